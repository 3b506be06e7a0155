"""The first minute of a web that nobody can sign in to: a link on the loopback, advice elsewhere (S91)."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from fairlane.app.access.sign_in import SignIn
from fairlane.app.acting import current_actor
from fairlane.app.fairlane import Fairlane
from fairlane.model.access import Role
from fairlane.model.instants import MINUTE, SECOND, Micros
from fairlane.web.access.sign_in_pages import link_url

LINK_LIFETIME: Final[Micros] = 15 * MINUTE

_ADD: Final = "fairlane users add NAME --role admin"


async def first_sign_in(app: Fairlane, url: str, address: str) -> str | None:
    """Return what to tell whoever starts a web that listens at `address`; None if there are users.

    On the loopback it has a link, which signs in one administrator once: so the first minute needs no set-up,
    and nothing is open. Other machines reach other addresses, and whoever reads a log there could use it.
    """
    sign_in = SignIn(app)
    if await sign_in.has_users() or app.settings.web.user_header_role is not None:
        return None
    if not is_loopback(address):
        return (
            "Nobody can sign in yet, and other machines may reach this address, so no link is printed.\n"
            f"Add a user:\n\n    {_ADD}\n"
        )
    secret = await sign_in.make_link(role=Role.ADMIN, name=current_actor(), valid_for=LINK_LIFETIME / SECOND)
    return (
        "Nobody can sign in yet. This link signs you in as an administrator, once, "
        f"within {LINK_LIFETIME // MINUTE} minutes:\n\n"
        f"    {link_url(url, secret)}\n\n"
        f"For later, add a user: {_ADD}\n"
    )


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("10.0.0.7")
    (True, True, False, False)
    """
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
