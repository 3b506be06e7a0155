// Return what no page of ours has, whatever its texts are: elements, attributes and addresses of others.
() => {
  const FOREIGN = /^(iframe|object|embed|base|style|marquee|math|template|video|audio|frame|applet|image)$/;
  const wrong = [];
  const bad = /^\s*(javascript|data|vbscript|blob):/i;
  const addresses = ["href", "src", "action", "formaction", "xlink:href", "data", "poster"];
  for (const element of document.querySelectorAll("*")) {
    const name = element.localName;
    const is = (text) => wrong.push(`${text} in ${element.outerHTML.slice(0, 200)}`);
    const own = (address) => new URL(address, location).pathname.startsWith("/static/");
    if (FOREIGN.test(name)) is(name);
    if (name === "script" && !own(element.src)) is(name);
    if (name === "link" && !own(element.href)) is(name);
    if (name === "script" && element.textContent) is("a script of its own");
    if (name === "meta" && element.httpEquiv) is("a meta that acts");
    for (const attribute of element.attributes) {
      if (/^on|^hx-on|^style$|^srcdoc$/.test(attribute.name)) is(attribute.name);
      if (addresses.includes(attribute.name)) {
        if (bad.test(attribute.value)) is(attribute.value);
        else if (new URL(attribute.value, location).origin !== location.origin) is("an address elsewhere");
      }
    }
  }
  return wrong;
}
