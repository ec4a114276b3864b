"""What did the runs of a period show? Trends, what changed since last week, and the verdict.

`period` puts it together from the `runs` of some `weeks`; a `series` is the runs of one golden set,
with the `trend` of each figure, slices that `drift`, `golden_changes`, and what is `owed` (judges
without calibration, open notes). `verdict` and `words` are its first lines, `as_json` its JSON.
"""
