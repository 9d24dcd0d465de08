"""The exact way back, layer by layer, and its obstacles: fibres, folds and collisions.

Work in float64: ``model.double().eval()``. Nothing here is trained, and what cannot be undone is
described instead, by all that it might have been.
"""
