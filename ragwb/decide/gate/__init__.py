"""Does it ship? A run, and what it is compared with, held against a policy.

`policy` reads the file (`policy_blocks` says what may stand in it, `policy_lines` finds the line of
a fault, `policy_rules` reads metrics and slices), `policy_draft` writes one from a run. `gate`
decides: `rules` on one run, `regression` against a baseline, which is a run or the figures of one
(`baseline`), both by the `figures` of each slice; `result` is the verdict and every rule behind it.
"""
