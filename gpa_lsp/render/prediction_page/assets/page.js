"use strict";
// Draws the charts when they come into view, and goes where an editor shows a launch.
(async () => {
  const charts = await gpaPage.readCompressed("packed-charts");
  const observer = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (!one.isIntersecting) continue;
      observer.unobserve(one.target);
      gpaPage.drawChart(one.target, charts[one.target.dataset.chart]).catch((error) => { one.target.textContent = error.message; });
    }
  }, { rootMargin: "400px" });
  for (const element of document.querySelectorAll("[data-chart]")) observer.observe(element);
  addEventListener("message", ({ data }) => { // { command: "show", address: "#k1" }
    if (data?.command === "show" && typeof data.address === "string") document.getElementById(data.address.slice(1))?.scrollIntoView();
  });
  gpaPage.tellReady();
})();
