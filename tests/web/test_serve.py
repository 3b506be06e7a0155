"""The socket of the web: what browsers get from it comes at once."""

from __future__ import annotations

import socket

from fairlane.app.web_settings import WebSettings
from fairlane.web.serve import listening


def test_no_answer_waits_for_the_browser_to_confirm_its_first_part() -> None:
    """Every accepted connection sends each part at once; else a delayed confirmation costs 40 ms."""
    with listening(WebSettings(port=0)) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
