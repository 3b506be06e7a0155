"""Sixty texts that are scripts wherever a page forgets to escape, in the ways that browsers have for it.

Each would call `alert`, which a page of ours never does.
"""

from __future__ import annotations

from typing import Final

PAYLOADS: Final[tuple[str, ...]] = (
    # elements that run by themselves
    "<script>alert(1)</script>",
    "<ScRiPt >alert(2)</sCrIpT >",
    "<script src=data:,alert(3)></script>",
    "<script type=module>alert(4)</script>",
    "<scr<script>ipt>alert(5)</scr</script>ipt>",
    "<svg><script>alert(6)</script></svg>",
    "<svg><script>alert&#40;7&#41;</script></svg>",
    "<math><mtext><script>alert(8)</script>",
    "<template><script>alert(9)</script></template>",
    "</script><script>alert(10)</script>",
    # handlers that run when something is shown or fails
    "<img src=x onerror=alert(11)>",
    "<img/src=x/onerror=alert(12)>",
    "<IMG SRC=x ONERROR=alert(13)>",
    "<img src=x onerror='alert(14)' ",
    '<img src=1 href=1 onerror="javascript:alert(15)">',
    "<image src=x onerror=alert(16)>",
    "<svg onload=alert(17)>",
    "<svg/onload=alert(18)>",
    "<svg><animate onbegin=alert(19) attributeName=x dur=1s>",
    "<svg><set attributeName=x onbegin=alert(20)>",
    "<body onload=alert(21)>",
    "<body onpageshow=alert(22)>",
    "<iframe onload=alert(23)>",
    "<video><source onerror=alert(24)>",
    "<video src=x onerror=alert(25)>",
    "<audio src=x onerror=alert(26)>",
    "<object data=x onerror=alert(27)>",
    "<input autofocus onfocus=alert(28)>",
    "<select autofocus onfocus=alert(29)>",
    "<textarea autofocus onfocus=alert(30)>",
    "<details open ontoggle=alert(31)>",
    "<marquee onstart=alert(32)>x</marquee>",
    "<style>@keyframes x{}</style><b style=animation-name:x onanimationstart=alert(33)>",
    "<p contenteditable autofocus onfocus=alert(34)>",
    # addresses that are scripts
    "<a href=javascript:alert(35)>x</a>",
    "<a href=' javascript:alert(36)'>x</a>",
    "<a href=java&Tab;script:alert(37)>x</a>",
    "<iframe src=javascript:alert(38)>",
    "<iframe srcdoc='<script>alert(39)</script>'>",
    "<form action=javascript:alert(40)><button>x</button></form>",
    "<button form=x formaction=javascript:alert(41)>x</button>",
    "<object data=javascript:alert(42)>",
    "<embed src=javascript:alert(43)>",
    "<svg><a xlink:href=javascript:alert(44)><text y=9>x</text></a></svg>",
    "<math href=javascript:alert(45)>x</math>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(46)'>",
    "<base href=javascript:alert(47)//>",
    "<link rel=stylesheet href=data:,*{x:expression(alert(48))}>",
    "javascript:alert(49)",
    # ways out of an attribute, a text area, a title or a comment
    '" onmouseover=alert(50) x="',
    "' autofocus onfocus=alert(51) x='",
    '"><svg onload=alert(52)>',
    "'><img src=x onerror=alert(53)>",
    "` onerror=alert(54)",
    "</textarea><script>alert(55)</script>",
    "</title><script>alert(56)</script>",
    "--><script>alert(57)</script><!--",
    "]]><script>alert(58)</script>",
    # what templates, and scripts that read attributes, would run
    "{{constructor.constructor('alert(59)')()}}{% raw %}",
    "<b hx-on:load=alert(60) hx-get=/help hx-trigger=load>x</b>",
)

LABEL_CHARS: Final = 240
TEXT_CHARS: Final = 1_900


def bundles(most: int) -> list[str]:
    """Return texts of at most so many characters that together hold every payload, whole.

    >>> all(any(one in text for text in bundles(LABEL_CHARS)) for one in PAYLOADS)
    True
    """
    made: list[str] = [""]
    for payload in PAYLOADS:
        if made[-1] and len(made[-1]) + 1 + len(payload) > most:
            made.append("")
        made[-1] += f" {payload}" if made[-1] else payload
    return made


LABELS: Final = tuple(bundles(LABEL_CHARS))
"""For keys, tags and whatever else is a short text."""

TEXTS: Final = tuple(bundles(TEXT_CHARS))
"""For messages, reasons, notes and logs."""

_NOT_IN_TENANTS: Final = frozenset("{}\"'`*?\\/ ")
TENANTS: Final = tuple(
    "".join(sign for sign in payload if sign not in _NOT_IN_TENANTS).lstrip("-") for payload in PAYLOADS
)
"""What is left of the payloads in the characters that a tenant's name may have."""
