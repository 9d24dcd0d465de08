import hashlib
import http.server
import re
import resource
import threading

import pytest
import torch
import torchvision

from minivit.catalogue import TORCHVISION
from minivit.loading import fetch

CONTENT = bytes(range(256)) * 4000  # 1 MB
NAME = f"vit-{hashlib.sha256(CONTENT).hexdigest()[:8]}.pth"


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT whole, or as ``fault`` says, and counts what it was asked for."""

    fault = None
    requests = 0

    def handle_error(self, *_):
        """Says nothing when a client goes away in the middle."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests += 1
        if self.server.fault == "404":
            return self.send_error(404)
        self.send_response(200)
        if self.server.fault != "no length":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        end = len(CONTENT) // 2 if self.server.fault in ("cut", "no length") else len(CONTENT)
        flip = b"\xff" if self.server.fault == "one byte" else CONTENT[:1]
        self.wfile.write(flip + CONTENT[1:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.url = f"http://127.0.0.1:{server.server_port}/models/{NAME}"
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    return tmp_path / "hub" / "checkpoints"


def test_the_zoo_lists_torchvisions_weights_and_every_url_has_a_hash():
    for name in torchvision.models.list_models(include=["vit_*", "resnet*"]):
        known = list(torchvision.models.get_model_weights(name))
        assert TORCHVISION[name] == tuple(weights.name for weights in known)
        for weights in known:
            assert re.search(r"/[a-z0-9_]+-[0-9a-f]{8}\.pth$", weights.url)


def test_a_file_is_fetched_once_with_progress_and_then_comes_from_the_cache(server, folder, capfd):
    assert fetch(server.url) == folder / NAME
    assert (folder / NAME).read_bytes() == CONTENT
    assert "100%" in capfd.readouterr().err
    assert [p.name for p in folder.iterdir()] == [NAME]
    fetch(server.url)
    assert server.requests == 1
    assert capfd.readouterr().err == ""


def test_a_cached_file_needs_no_network(folder):
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(CONTENT)
    assert fetch(f"http://127.0.0.1:9/{NAME}") == folder / NAME


@pytest.mark.parametrize(
    "broken", [b"", CONTENT[:-1], b"\xff" + CONTENT[1:]], ids=["empty", "truncated", "a byte"]
)
def test_a_broken_file_in_the_cache_is_noticed_and_fetched_again(server, folder, broken):
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(broken)
    fetch(server.url)
    assert (folder / NAME).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("cut", "invalid hash"),
        ("no length", "invalid hash"),
        ("one byte", "invalid hash"),
        ("404", "404"),
    ],
)
@pytest.mark.parametrize(
    "before", [None, b"broken"], ids=["nothing before", "a broken file before"]
)
def test_a_transfer_that_fails_changes_nothing_and_names_url_and_cache(
    server, folder, fault, said, before
):
    server.fault = fault
    if before:
        folder.mkdir(parents=True)
        (folder / NAME).write_bytes(before)
    with pytest.raises(OSError, match=said) as caught:
        fetch(server.url)
    assert server.url in str(caught.value) and str(folder / NAME) in str(caught.value)
    left = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert left == ({NAME: before} if before else {})
    server.fault = None
    assert fetch(server.url).read_bytes() == CONTENT  # and the next try succeeds


def test_without_a_network_one_error_names_url_and_cache(folder):
    with pytest.raises(
        OSError, match=f"could not fetch http://127.0.0.1:9/{NAME}: .*{folder / NAME}"
    ):
        fetch(f"http://127.0.0.1:9/{NAME}")


@pytest.mark.parametrize("kind", ["the cache's parent is a file", "the file's place is a folder"])
def test_a_cache_that_cannot_be_written_is_an_error_that_names_it(server, folder, kind):
    if kind == "the cache's parent is a file":
        folder.parent.write_text("")
    else:
        (folder / NAME).mkdir(parents=True)
    with pytest.raises(OSError, match=f"could not fetch .*{folder / NAME}"):
        fetch(server.url)
    assert server.requests == 0


@pytest.mark.parametrize("room", [100_000, 128 * 1024 - 4096, 128 * 1024])
def test_a_full_disk_is_an_error_and_leaves_nothing_behind(server, folder, room):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:  # a write past the limit fails as it does on a full disk, with another number
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        with pytest.raises(OSError, match=f"could not fetch .*File too large.*{folder / NAME}"):
            fetch(server.url)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(folder.iterdir()) == []


def test_torch_home_moves_the_cache(folder):
    assert torch.hub.get_dir() == str(folder.parent)
