"""Every page, for every role, of all tenants and of one: it is there or it is not, and it is safe to show."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

import pytest

from fairlane.web.api import GROUPS
from fairlane.web.application import asgi
from tests.stores import STORES
from tests.web.callers import ann, web_of
from tests.web.pages.markup import Markup
from tests.web.pages.scene import FOREIGN, FOREIGN_WORD, MINE, SECRET, all_pages, filled, roles

SMOKE = sorted(set(STORES) - {"oracle", "sqlite"})


async def test_every_page_is_well_formed_and_escaped_for_every_role() -> None:
    """What users put into jobs is text, whoever looks; secrets are shown to nobody."""
    wrong: dict[str, list[str]] = {}
    shown = 0
    async with filled("sqlite") as scene:
        for role, tenant in roles():
            async with web_of(scene.app, ann(role, tenant)) as web:
                for page in all_pages():
                    for path in await scene.paths(page, MINE):
                        answer = await web.get(path)
                        name = f"{role} {tenant} {path[:80]}"
                        if answer.status_code in {403, 404}:
                            continue
                        shown += 1
                        markup = Markup(answer.text)
                        found = list(markup.wrong)
                        found += ["a secret"] * (SECRET in answer.text)
                        found += ["a raw payload"] * ("<script>alert" in answer.text)
                        found += ["an image of a payload"] * ("<img src=x" in answer.text)
                        found += [f"status {answer.status_code}"] * (answer.status_code not in {200, 422})
                        if found:
                            wrong[name] = found
    assert wrong == {}
    assert shown > 100


async def test_a_caller_of_one_tenant_sees_nothing_of_another() -> None:
    """Not in lists, not in counts, not by its id, not in errors: as if it did not exist."""
    leaks: list[str] = []
    async with filled("sqlite") as scene:
        foreign = [path for page in all_pages() for path in await scene.paths(page, FOREIGN)]
        for role, _ in roles()[::2]:
            async with web_of(scene.app, ann(role, MINE)) as web:
                for path in foreign:
                    answer = await web.get(path)
                    if FOREIGN_WORD in answer.text:
                        leaks.append(f"{role} {path}")
                    if re.search(r"/(jobs|dead)/[0-9a-f-]{36}$", path) and answer.status_code == 200:
                        leaks.append(f"{role} {path} is there")
    assert leaks == []


async def test_pages_answer_as_their_declaration_says() -> None:
    """A page for all tenants does not exist for a caller of one; a role that is too low is refused."""
    async with filled("sqlite") as scene:
        site = asgi(scene.app, authenticate=lambda _: _nobody()).state.site
        for role, tenant in roles():
            principal = ann(role, tenant)
            async with web_of(scene.app, principal) as web:
                for page in all_pages():
                    path = (await scene.paths(page, MINE))[0]
                    status = (await web.get(path)).status_code
                    if not site.is_there(principal, page.tenants):
                        assert status == 404, path
                    elif not principal.may(page.name, site.least_role(page.least)):
                        assert status == 403, path
                    else:
                        assert status == 200, path


@pytest.mark.parametrize("store", SMOKE)
async def test_every_page_works_on_every_store(store: str) -> None:
    """They read through one contract."""
    async with filled(store) as scene, web_of(scene.app, ann()) as web:
        for page in all_pages():
            for path in await scene.paths(page, MINE):
                answer = await web.get(path)
                assert answer.status_code in {200, 422}, path
                assert Markup(answer.text).wrong == [], path


TYPED: Final = {
    "/do/tenants.declare": {"tenant": "umbrella"},
    "/do/schedules.add": {"task": "mail.send", "every": "1h", "arguments": '{"to": "x"}'},
}
"""What a person must type into a form."""

AT_LAST: Final = ("/do/tenants.purge", "/do/tenants.forget")
"""What would leave nothing for the other forms."""


async def test_every_form_is_understood_by_its_endpoint() -> None:
    """Each form of each page is sent as it is, with a note: no endpoint knows a field less than its page."""
    misunderstood: list[str] = []
    sent: set[str] = set()
    async with filled("sqlite") as scene, web_of(scene.app, ann()) as web:

        async def send(path: str, action: str, fields: dict[str, str]) -> None:
            values = fields | {"note": "because"} | TYPED.get(action, {})
            answer = await web.post(action, data=values, headers={"hx-request": "true"})
            if answer.status_code == 422 and re.search("not known|is missing", answer.text):
                misunderstood.append(f"{path[:60]} {action}: {answer.text}")
            elif answer.status_code not in {200, 204, 422}:
                misunderstood.append(f"{path[:60]} {action}: {answer.status_code}")

        later: list[tuple[str, str, dict[str, str]]] = []
        for page in all_pages():
            for path in await scene.paths(page, MINE):
                for action, fields in Markup((await web.get(path)).text).forms:
                    if not action.startswith("/do/") or action in sent:
                        continue
                    sent.add(action)
                    if action in AT_LAST:
                        later.append((path, action, fields))
                    else:
                        await send(path, action, fields)
        for path, action, fields in later:
            await send(path, action, fields)
    assert misunderstood == []
    assert {"/do/jobs.cancel", "/do/jobs.cancel_all", "/do/dead.reprocess", "/do/dead.resolve_all"} <= sent
    assert {"/do/tenants.set", "/do/tenants.forget", "/do/queues.resume", "/do/queues.set"} <= sent


def test_templates_name_endpoints_that_exist() -> None:
    """A button for an endpoint that does not exist would silently be absent."""
    known = {endpoint.name for group in GROUPS for endpoint in group}
    named: set[str] = set()
    folders = [files("fairlane.web").joinpath("templates")]
    while folders:
        for one in folders.pop().iterdir():
            if one.is_dir():
                folders.append(one)
            else:
                text = one.read_text(encoding="utf-8")
                named |= set(re.findall(r'(?:action|may)\(\s*"([a-z_]+\.[a-z_]+)"', text))
    assert len(named) > 15
    assert named <= known


async def _nobody() -> None:
    return None
