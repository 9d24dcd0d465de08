"""Mutants of chapter 15's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

SIDES = "first, second = ({} 0.05 {} lost, {} 0.05 {} lost)"
STEP_OFF = SIDES.format("positive +", "*", "positive -", "*")
START = "Newton's method only needs a start across the fold, and finds its way from this one too"
STEPS = "one step more or less of what has converged"

EQUIVALENT = {
    "queries_from_scores": {},
    "undo_residual": {},
    "asymptotic_rate": {},
    "held_attention": {},
    "build_collision": {
        **{
            f"{STEP_OFF} -> {SIDES.format('positive +', '*', *other)}": START
            for other in (
                ("negative -", "*"),
                ("positive -", "%"),
                ("positive -", "**"),
                ("positive -", "-"),
                ("positive -", "/"),
                ("positive -", "//"),
                ("positive /", "*"),
                ("positive //", "*"),
            )
        },
        f"{STEP_OFF} -> {STEP_OFF.replace('- 0.05', '- 1.05')}": START,
        **{
            f"{STEP_OFF} -> {SIDES.format(*other, 'positive -', '*')}": (
                "another first input beside the fold does as well"
            )
            for other in (("negative +", "*"), ("positive +", "%"), ("positive +", "+"))
        },
        f"{STEP_OFF} -> {STEP_OFF.replace('+ 0.05', '+ 1.05')}": (
            "another first input beside the fold does as well"
        ),
        "for _ in range(20): -> for _ in range(19):": STEPS,
        "for _ in range(20): -> for _ in range(21):": STEPS,
        "for _ in range(40): -> for _ in range(39):": STEPS,
        "for _ in range(40): -> for _ in range(41):": STEPS,
        "if torch.linalg.det(jacobian(middle)) > 0: -> "
        "if torch.linalg.det(jacobian(middle)) >= 0:": "it is never exactly zero",
        "lost = torch.linalg.svd(jacobian(positive)).Vh[-1] -> "
        "lost = torch.linalg.svd(jacobian(negative)).Vh[-1]": "the two ends have met",
        "lost = torch.linalg.svd(jacobian(positive)).Vh[-1] -> "
        "lost = torch.linalg.svd(jacobian(positive)).Vh[1]": START,
        "middle = (positive + negative) / 2 -> middle = (positive + negative) / 3": (
            "the fold is also met on the way to zero"
        ),
    },
}
