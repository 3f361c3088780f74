// The critical path on the maps: what of it is in the SIP and in the interval.

function drawPathOnMap() {
  const now = interval(), {pieces, routes, links: routeLinks} = page.path;
  const boxes = model("boxes").data;
  const found = {x: [], y: [], w: [], h: []}, places = new Set(), names = new Set();
  const between = new Set(), passed = new Set();
  if (element("show-path").checked) {
    for (let at = 0; at < pieces.begin_ps.length; at++) {
      if (pieces.end_ps[at] <= now.from || pieces.begin_ps[at] >= now.to) continue;
      if (pieces.route[at] >= 0) passed.add(pieces.route[at]);
      if (pieces.sip[at] !== chosen.sip) continue;
      if (pieces.pe[at] >= 0) places.add(`${pieces.cube[at]} ${pieces.pe[at]}`);
      names.add(pathText("component", at));
    }
    // What the data of these pieces passed, also in SIPs that only forward it.
    for (const route of passed)
      for (const [sip, links] of routes[route])
        for (const link of links) {
          if (sip === chosen.sip) names.add(routeLinks[link]);
          between.add(routeLinks[link]);
        }
    for (let row = 0; row < boxes.name.length; row++)
      if (boxes.kind[row] === "PE" && places.has(`${boxes.cube[row]} ${boxes.pe[row]}`))
        for (const key of Object.keys(found)) found[key].push(boxes[key][row]);
  }
  model("path_boxes").data = found;
  model("path_links").data = segmentsOf("links", names);
  if (page.sips > 1) model("path_sip_links").data = segmentsOf("sip_links", between);
}

// The segments of the links with these names.
function segmentsOf(source, names) {
  const links = model(source).data, lines = {x0: [], y0: [], x1: [], y1: []};
  for (let row = 0; row < links.name.length; row++)
    if (names.has(links.name[row]))
      for (const key of Object.keys(lines)) lines[key].push(links[key][row]);
  return lines;
}
