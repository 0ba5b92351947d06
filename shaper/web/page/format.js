// Numbers as people read them: three digits and a unit.

const THIN = '\u202f';

function digits(value) {
  if (value === 0) return '0';
  if (value < 0.01) return '<0.01';
  if (value < 10) return value.toFixed(2);
  if (value < 100) return value.toFixed(1);
  return value.toFixed(0);
}

/** The number and the unit of `value`, with the prefix that leaves it below 1000. */
function scaled(value, unit, prefixes = ['', 'k', 'M', 'G', 'T']) {
  let step = 0;
  while (value >= 999.5 && step < prefixes.length - 1) {
    value /= 1000;
    step += 1;
  }
  const number = step === 0 && Number.isInteger(value) ? String(value) : digits(value);
  return [number, prefixes[step] + unit];
}

export const rate = (bps) => scaled(bps, 'bit/s').join(THIN);
export const bytes = (count) => scaled(count, 'B').join(THIN);
export const count = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, THIN);
export const percent = (share) => `${Math.round(100 * share)}${THIN}%`;

export function delay(us) {
  if (us === null || us === undefined) return '\u2013';
  return us >= 999_500 ? `${digits(us / 1e6)}${THIN}s` : `${digits(us / 1000)}${THIN}ms`;
}

/** "19.9 of 20.0 Mbit/s": one unit, that of the limit. */
export function rateOf(bps, limit) {
  const [number, unit] = scaled(limit, 'bit/s');
  const own = scaled(bps, 'bit/s');
  return own[1] === unit ? `${own[0]} of ${number}${THIN}${unit}` : `${own.join(THIN)} of ${number}${THIN}${unit}`;
}

export const perSecond = (number) => `${number < 10 ? digits(number) : count(number)}/s`;

export const clock = (time) => new Date(time).toLocaleTimeString('en-GB');
