"""How good? Figures of retrieval, answers, passages, cost and data, with their uncertainty.

The face: `retrieval.find_hits` and `retrieval.score_hits` (hits of results, figures at any K),
`cases.score_cases` and `cases.score_facts` (`summary.Scores`), `coverage` (passages at any K),
`metric.parse_metric`, `statistics`, `cost`, `passages`, `knowledge`, and `trec.trec_figures` for
reconciling with trec_eval. Of answers: `answers.score_answers` (`answer_scores.AnswerScores`),
`claims.find_claim` and `claims.split_claims`, `rules.check_rules` with a `rule_pack.load_pack`.
What every number means stands in the README's table of metrics.
"""

__all__ = [
    "answers",
    "cases",
    "claims",
    "cost",
    "coverage",
    "facts",
    "knowledge",
    "metric",
    "passages",
    "retrieval",
    "rule_pack",
    "rules",
    "statistics",
    "summary",
    "trec",
]
