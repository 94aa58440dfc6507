"use strict";
// Draws the charts when they come into view, and goes where an editor shows a launch.
(async () => {
  gpaPage.drawWhenSeen(document, await gpaPage.readCompressed("packed-charts"));
  addEventListener("message", ({ data }) => { // { command: "show", address: "#k1" }
    if (data?.command === "show" && typeof data.address === "string") document.getElementById(data.address.slice(1))?.scrollIntoView();
  });
  gpaPage.tellReady();
})();
