// Draws images/icon.png: a chip whose rows are coloured by heat, with the way from the victim back to the cause.
import { writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";

const SIZE = 128;
const SAMPLES = 4; // a side, for smooth edges

const BACKGROUND = [27, 31, 39];
const CHIP = [44, 51, 63];
const PIN = [122, 134, 152];
const ROWS = [
  { y: 38, x: 40, length: 30, colour: [110, 120, 136] },
  { y: 52, x: 40, length: 40, colour: [92, 160, 255] },
  { y: 66, x: 40, length: 24, colour: [110, 120, 136] },
  { y: 80, x: 40, length: 48, colour: [255, 138, 56] },
];
const ARROW = [240, 243, 248];

const inBox = (x, y, left, top, right, bottom, radius) => {
  const dx = Math.max(left + radius - x, 0, x - (right - radius));
  const dy = Math.max(top + radius - y, 0, y - (bottom - radius));
  return x >= left && x <= right && y >= top && y <= bottom && dx * dx + dy * dy <= radius * radius;
};

const onArrow = (x, y) => {
  const distance = Math.hypot(x - 86, y - 70);
  const isArc = x >= 86 && Math.abs(distance - 14) <= 2 && y >= 56 && y <= 84;
  const isHead = x <= 87 && x >= 79 && Math.abs(y - 56) <= (x - 79) * 0.85;
  return isArc || isHead;
};

function colourAt(x, y) {
  if (!inBox(x, y, 0, 0, SIZE, SIZE, 24)) return [0, 0, 0, 0];
  if (onArrow(x, y)) return [...ARROW, 255];
  for (const { y: top, x: left, length, colour } of ROWS) {
    if (inBox(x, y, left, top, left + length, top + 7, 3.5)) return [...colour, 255];
  }
  if (inBox(x, y, 26, 26, 102, 102, 10)) return [...CHIP, 255];
  for (let pin = 36; pin <= 92; pin += 14) {
    const isSide = inBox(x, y, 16, pin - 2.5, 112, pin + 2.5, 2.5);
    const isEnd = inBox(x, y, pin - 2.5, 16, pin + 2.5, 112, 2.5);
    if (isSide || isEnd) return [...PIN, 255];
  }
  return [...BACKGROUND, 255];
}

function averageAt(column, row) {
  const sum = [0, 0, 0, 0];
  for (let i = 0; i < SAMPLES * SAMPLES; i++) {
    const [red, green, blue, alpha] = colourAt(column + ((i % SAMPLES) + 0.5) / SAMPLES, row + (Math.floor(i / SAMPLES) + 0.5) / SAMPLES);
    [red * alpha, green * alpha, blue * alpha, alpha].forEach((value, index) => (sum[index] += value));
  }
  return sum[3] === 0 ? [0, 0, 0, 0] : [sum[0] / sum[3], sum[1] / sum[3], sum[2] / sum[3], sum[3] / SAMPLES ** 2].map(Math.round);
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

const rows = [];
for (let row = 0; row < SIZE; row++) {
  rows.push(0, ...Array.from({ length: SIZE }, (_, column) => averageAt(column, row)).flat());
}
const header = Buffer.alloc(13);
header.writeUInt32BE(SIZE, 0);
header.writeUInt32BE(SIZE, 4);
header.set([8, 6, 0, 0, 0], 8);
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const image = [signature, chunk("IHDR", header), chunk("IDAT", deflateSync(Buffer.from(rows), { level: 9 })), chunk("IEND", Buffer.alloc(0))];
writeFileSync(new URL("../images/icon.png", import.meta.url), Buffer.concat(image));
