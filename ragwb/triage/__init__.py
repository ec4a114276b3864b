"""Where did it break? The stage where evidence disappeared, the proof, and what brings it back.

The face: `attribute.triage` (a run to its failed cases, each with stage, reason and proof),
`whatif` (what other settings would do, from the saved candidates alone), `reasons` (the codes).
"""

__all__ = ["attribute", "reasons", "verdict", "whatif"]
