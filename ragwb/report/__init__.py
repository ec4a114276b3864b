"""How is a result handed on? As JSON for scripts, Markdown for a pull request, HTML for people.

`evaluation` holds a run against limits, `sections` are the parts of its report and
`triage_sections` those of a triage, `files` writes the three files, `notebook` runs any
parameterised notebook headless and exports it.
"""

__all__: list[str] = []
