"""Behind nginx as docs/serve.md sets it up: names, pictures, keys, limits and refusals come through unchanged."""

import http.client
import os
import shutil
import socket
import subprocess
import time

import pytest

from tests.missing import missing
from tests.search.serve.client import Server, multipart
from tests.search.serve.conftest import encoded

CONFIG = """
pid {folder}/pid; error_log {folder}/error.log; worker_processes 1; daemon off; {user}
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 20m;
    location / {{
      proxy_pass http://127.0.0.1:{behind};
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_read_timeout 60s;
    }}
  }}
}}
"""


@pytest.fixture
def proxied(template, tmp_path):
    if shutil.which("nginx") is None:
        missing("nginx is not installed")
    place = shutil.copytree(template, tmp_path / "shop.index")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Server(place, token="secret") as server:
        user = "user root;" if os.getuid() == 0 else ""
        config = tmp_path / "nginx.conf"
        config.write_text(CONFIG.format(folder=tmp_path, port=port, behind=server.port, user=user))
        process = subprocess.Popen(["nginx", "-c", str(config)], stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + 20
            while socket.socket().connect_ex(("127.0.0.1", port)):
                assert time.monotonic() < until
                time.sleep(0.05)
            yield port
        finally:
            process.terminate()
            process.wait(20)


def ask(port, method, path, body=b"", kind="application/json", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, {"Authorization": "Bearer secret", "Content-Type": kind} | headers)
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return reply.status, reply.headers, content


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_behind_nginx(proxied):
    assert ask(proxied, "GET", "/v1/health")[0] == 200
    body, kind = multipart([("image", encoded()), ("id", "a/b c")])
    status, headers, _ = ask(proxied, "POST", "/v1/items", body, kind)
    assert status == 201
    assert headers["x-request-id"]
    assert ask(proxied, "GET", "/v1/items/a%2Fb%20c")[0] == 200  # slashes in an id stay what they are
    assert ask(proxied, "GET", "/v1/items/a%2Fb%20c/thumbnail")[2][:3] == b"\xff\xd8\xff"
    body, kind = multipart([("image", encoded())])
    assert ask(proxied, "POST", "/v1/search", body, kind)[0] == 200
    assert ask(proxied, "GET", "/v1/index", Authorization="Bearer wrong")[0] == 401
    assert ask(proxied, "GET", "/v1/index", Host="evil.example")[0] == 403
    assert ask(proxied, "GET", "/v1/index", Origin="http://evil.example")[0] == 403
    assert ask(proxied, "DELETE", "/v1/items/a%2Fb%20c")[0] == 200
