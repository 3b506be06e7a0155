// Return the controls of the open page that are too low for a finger.
() =>
  [...document.querySelectorAll(".btn, button, .tabbar a, .tabs a, .seg a")]
    .filter((one) => one.getClientRects().length && one.getBoundingClientRect().height < 24)
    .map((one) => one.outerHTML.slice(0, 120))
