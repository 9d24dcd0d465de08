"""The campaign has a valid call of every public function to spoil."""

from tests.hostile.calls import calls


def test_every_public_function_has_a_call():
    assert {"invert", "load", "train"} <= {call.name for call in calls()}
