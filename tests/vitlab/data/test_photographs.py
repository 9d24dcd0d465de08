import socket

import pytest
import torch
from skimage import data

from vitlab.data.photographs import PHOTOGRAPHS, crops, photograph


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_photograph_is_what_scikit_image_gives_without_asking_the_network(name, monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    theirs = torch.from_numpy(getattr(data, name)())
    theirs = theirs.permute(2, 0, 1) if theirs.ndim == 3 else theirs.expand(3, -1, -1)
    assert torch.equal(photograph(name), theirs)
    assert PHOTOGRAPHS[name].startswith(("CC0", "public domain"))


def test_crops_come_from_the_photographs_they_name_and_depend_on_the_seed_alone():
    images, names = crops(60, (24, 16), seed=1, names=("chelsea", "grass"))
    assert images.shape == (60, 3, 24, 16) and images.dtype == torch.uint8
    grey = [image.unique(dim=0).shape[0] == 1 for image in images]
    assert set(names) == {"chelsea", "grass"}
    assert grey == [name == "grass" for name in names]
    assert torch.equal(crops(5)[0], crops(9)[0][:5])
    assert torch.equal(crops(5, seed=2)[0], crops(5, seed=2)[0])
    assert not torch.equal(crops(5, seed=2)[0], crops(5, seed=3)[0])
    with pytest.raises(ValueError, match="expected one of astronaut, chelsea, .*: got 'mona_lisa'"):
        photograph("mona_lisa")
    with pytest.raises(ValueError, match="301 pixels or more in chelsea: got 300 x 451"):
        crops(1, 301, names=("chelsea",))
