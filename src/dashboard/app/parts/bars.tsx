/**
 * Values over time as bars, with the highest and the last one in figures. A table says the same to those who do not see it.
 *
 * @module
 */

const HEIGHT = 40;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });

interface BarsProps {
  title: string;
  unit?: string;
  /** When each bar begins. */
  times: readonly string[];
  values: readonly number[];
}

export function Bars({ title, unit = "", times, values }: BarsProps) {
  const most = Math.max(...values, 0);
  const figure = (value: number) => `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })}${unit && ` ${unit}`}`;
  const at = (index: number) => clock.format(new Date(times[index] ?? 0));
  return (
    <figure class="bars">
      <figcaption>
        <span>{title}</span>
        <b>{figure(values.at(-1) ?? 0)}</b>
      </figcaption>
      <svg
        viewBox={`0 0 ${values.length} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${figure(values.at(-1) ?? 0)} now, at most ${figure(most)} since ${at(0)}`}
      >
        {values.map((value, index) => {
          const height = most === 0 ? 0 : Math.max(value === 0 ? 0 : 1, (value / most) * HEIGHT);
          return (
            <rect key={index} x={index + 0.1} y={HEIGHT - height} width={0.8} height={height}>
              <title>{`${at(index)}: ${figure(value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="quiet" aria-hidden="true">
        <span>{at(0)}</span>
        <span>at most {figure(most)}</span>
        <span>now</span>
      </p>
    </figure>
  );
}
