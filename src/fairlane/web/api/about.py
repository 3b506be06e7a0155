"""What the REST API says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlane.web.call import WebCall
from fairlane.web.declare import EndpointGroup
from fairlane.web.openapi import document

ABOUT: Final = EndpointGroup("about", "The description of this API, for programs.")


@ABOUT.get("/openapi.json", "about.openapi")
async def openapi(call: WebCall) -> Mapping[str, Any]:
    """Return the OpenAPI 3.1 document of the endpoints that are there for the caller."""
    site = call.site
    there = [one for one in site.endpoints.values() if site.is_there(call.principal, one.tenants)]
    return document(there, call.request.scope.get("root_path", ""))
