// Return what makes the open page wider than the window.
() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return [];
  const wide = [...document.querySelectorAll("main *")]
    .filter((one) => one.getBoundingClientRect().right > root.clientWidth && !one.closest(".scroll, pre"))
    .slice(0, 3).map((one) => one.outerHTML.slice(0, 200));
  return wide.length ? wide : ["something outside of the page itself"];
}
