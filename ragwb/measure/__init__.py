"""How good? Figures of retrieval, passages, cost and the data layer, with their uncertainty.

The face: `retrieval.find_hits` and `retrieval.score_hits` (hits of results, figures at any K),
`cases.score_cases` and `cases.score_facts` (`summary.Scores`), `coverage` (passages at any K),
`metric.parse_metric`, `statistics`, `cost`, `passages`, `knowledge`, and `trec.trec_figures` for
reconciling with trec_eval.
What every number means stands in the README's table of metrics.
"""

__all__ = [
    "cases",
    "cost",
    "coverage",
    "facts",
    "knowledge",
    "metric",
    "passages",
    "retrieval",
    "statistics",
    "summary",
    "trec",
]
