"""How is a result handed on? As JSON for scripts, Markdown for a pull request, HTML for people.

`evaluation` holds a run against limits, `answer_evaluation` one of answers against hard rules too;
`sections`, `answer_sections` and `triage_sections` are the parts of their reports, `files` writes
the three files, `notebook` runs any parameterised notebook headless and exports it.
"""

__all__: list[str] = []
