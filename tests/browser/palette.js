// Return a picture with at most 256 colours: the most frequent, then the most different ones.
async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const counts = new Map();
  const colourAt = (index) => (data[index] << 16) | (data[index + 1] << 8) | data[index + 2];
  for (let index = 0; index < data.length; index += 4) counts.set(colourAt(index), (counts.get(colourAt(index)) ?? 0) + 1);
  const part = (colour, shift) => (colour >> shift) & 255;
  const distance = (a, b) => [16, 8, 0].reduce((sum, shift) => sum + (part(a, shift) - part(b, shift)) ** 2, 0);
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  const palette = sorted.slice(0, 208).map(([colour]) => colour);
  // Small marks have colours of their own: of the rest, those are taken that the palette is farthest from.
  const rest = sorted.slice(208).map(([colour, count]) => ({ colour, count, far: Math.min(...palette.map((one) => distance(one, colour))) }));
  while (palette.length < 256 && rest.length) {
    rest.sort((a, b) => a.far * Math.sqrt(a.count) - b.far * Math.sqrt(b.count));
    const { colour } = rest.pop();
    palette.push(colour);
    for (const one of rest) one.far = Math.min(one.far, distance(one.colour, colour));
  }
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const nearest = (colour) => {
    let best = 0;
    for (let place = 1; place < palette.length; place += 1)
      if (distance(palette[place], colour) < distance(palette[best], colour)) best = place;
    return best;
  };
  const pixels = new Uint8Array(data.length / 4);
  for (let index = 0; index < pixels.length; index += 1) {
    const colour = colourAt(4 * index);
    if (!places.has(colour)) places.set(colour, nearest(colour));
    pixels[index] = places.get(colour);
  }
  let text = "";
  for (let start = 0; start < pixels.length; start += 8192) text += String.fromCharCode(...pixels.subarray(start, start + 8192));
  return { width: image.width, height: image.height, palette, pixels: btoa(text) };
}
