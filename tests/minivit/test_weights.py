import hashlib
import http.server
import shutil
import threading

import pytest

from minivit.loading import fetch
from tests.minivit.conftest import full_disk

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


def put(folder, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(content)


def test_a_file_is_fetched_once_with_progress_and_then_comes_from_the_cache(server, folder, capfd):
    assert fetch(server.url) == folder / NAME
    assert (folder / NAME).read_bytes() == CONTENT
    assert "100%" in capfd.readouterr().err
    assert [p.name for p in folder.iterdir()] == [NAME]
    assert fetch(f"http://127.0.0.1:9/{NAME}") == folder / NAME  # a port where nothing listens
    assert capfd.readouterr().err == ""


def test_a_broken_file_in_the_cache_is_noticed_and_fetched_again(server, folder):
    for broken in b"", CONTENT[:-1], b"\xff" + CONTENT[1:]:
        put(folder, broken)
        assert fetch(server.url).read_bytes() == CONTENT


@pytest.mark.parametrize("before", [None, b"broken"])
@pytest.mark.parametrize("fault", ["cut", "no length", "one byte", "404"])
def test_a_transfer_that_fails_changes_nothing_and_names_its_url(server, folder, fault, before):
    server.fault = fault
    if before:
        put(folder, before)
    with pytest.raises(OSError, match="404" if fault == "404" else "invalid hash") as caught:
        fetch(server.url)
    assert server.url in str(caught.value) and str(folder / NAME) in str(caught.value)
    left = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert left == ({NAME: before} if before else {})
    server.fault = None
    assert fetch(server.url).read_bytes() == CONTENT  # and the next try succeeds


def test_no_network_and_a_cache_that_cannot_be_written_are_errors_that_name_it(server, folder):
    def fails(url):
        with pytest.raises(OSError, match=f"could not fetch {url}: .*{folder / NAME}"):
            fetch(url)

    fails(f"http://127.0.0.1:9/{NAME}")
    (folder / NAME).mkdir(parents=True)  # a folder in the file's place
    fails(server.url)
    shutil.rmtree(folder.parent)
    folder.parent.write_text("")  # a file in the folder's place
    fails(server.url)
    assert server.requests == 0


def test_a_full_disk_is_an_error_and_leaves_nothing_behind(server, folder):
    for room in 100_000, 128 * 1024 - 4096, 128 * 1024:
        with full_disk(room) as caught:
            fetch(server.url)
        assert str(folder / NAME) in str(caught.value)
        assert list(folder.iterdir()) == []
