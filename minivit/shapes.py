"""The shapes of the models' tensors, each defined once; the tests check them at run time."""

from typing import Annotated

from jaxtyping import Bool, Float
from torch import Tensor

Images = Float[Tensor, "batch channels height width"]
Patches = Float[Tensor, "batch patches numbers"]  # a patch's numbers: channel, row, column
Maps = Float[Tensor, "batch features rows columns"]  # of a ResNet
NewMaps = Float[Tensor, "batch new_features new_rows new_columns"]  # after a stride
Tokens = Float[Tensor, "batch tokens dim"]
Features = Float[Tensor, "*batch dim"]  # tokens, or one vector for each image
Logits = Float[Tensor, "batch classes"]
Queries = Float[Tensor, "*batch queries d_head"]
Keys = Float[Tensor, "*batch keys d_head"]
Values = Float[Tensor, "*batch keys d_value"]
Weights = Float[Tensor, "*batch queries keys"]  # of attention; a row sums to 1
Attended = Float[Tensor, "*batch queries d_value"]
Mask = Bool[Tensor, "..."]  # broadcasts to the weights; true where a query may attend
Table = Float[Tensor, "tokens dim"]  # of positions
Grid = tuple[int, int]  # rows and columns of patches
Size = int | tuple[int, int]  # height and width in pixels, or one number for both
Fraction = Annotated[float, "at least 0 and below 1"]
