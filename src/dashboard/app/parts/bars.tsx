/**
 * Values over time as bars, with an axis of values and one of times. What a bar says is read with the pointer, with a finger or with
 * the arrow keys: a slider that cannot be seen lies over the bars.
 *
 * @module
 */
import { useSignal } from "@preact/signals";

const HEIGHT = 40;
const TIMES_SHOWN = 3;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
/** For more than a day, in which a time of day comes twice. */
const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "short", hour: "2-digit", minute: "2-digit" });
const DAY_MS = 86_400_000;

interface BarsProps {
  title: string;
  unit?: string;
  /** Time at which each bar begins. */
  times: readonly string[];
  values: readonly number[];
  areFailures?: boolean;
}

export function Bars({ title, unit = "", times, values, areFailures = false }: BarsProps) {
  const last = values.length - 1;
  /** The bar that is read; null: none, and the last one is shown. */
  const read = useSignal<number | null>(null);
  const shown = Math.min(read.value ?? last, last);
  const top = topOf(Math.max(...values, 0));
  const value = values[shown] ?? 0;
  const figure = `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })}${unit && ` ${unit}`}`;
  const spanMs = Date.parse(times.at(-1) ?? "") - Date.parse(times[0] ?? "");
  const at = (index: number) => (spanMs > DAY_MS ? weekday : clock).format(new Date(times[index] ?? 0));
  const when = shown === last ? "now" : `at ${at(shown)}`;
  return (
    <figure class={areFailures ? "bars failures" : "bars"}>
      <figcaption>
        <span>{title}</span>
        <span>
          <b>{figure}</b> <span class="quiet">{when}</span>
        </span>
      </figcaption>
      <div class="plot">
        <p class="scale quiet" aria-hidden="true">
          {[top, top / 2, 0].map((value) => (
            // Half of one that is counted is none.
            <span key={value}>{unit === "" && !Number.isInteger(value) ? "" : value.toLocaleString("en")}</span>
          ))}
        </p>
        <div class="area">
          <Drawing values={values} top={top} read={read.value} />
          <Reader title={title} says={`${figure} ${when}`} count={values.length} shown={shown} onRead={(index) => (read.value = index)} />
        </div>
        <p class="times quiet" aria-hidden="true">
          {Array.from({ length: TIMES_SHOWN }, (_, index) => (
            <span key={index}>{at(Math.round((index * values.length) / TIMES_SHOWN))}</span>
          ))}
          <span>now</span>
        </p>
      </div>
    </figure>
  );
}

function Drawing({ values, top, read }: { values: readonly number[]; top: number; read: number | null }) {
  return (
    <svg viewBox={`0 0 ${values.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {[0, HEIGHT / 2, HEIGHT].map((y) => (
        <line key={y} x1={0} x2={values.length} y1={y} y2={y} />
      ))}
      {read !== null && <rect class="read" x={read} width={1} height={HEIGHT} />}
      {values.map((value, index) => {
        const height = value === 0 ? 0 : Math.max(1, (value / top) * HEIGHT);
        return <rect key={index} x={index + 0.1} y={HEIGHT - height} width={0.8} height={height} />;
      })}
    </svg>
  );
}

interface ReaderProps {
  title: string;
  /** Text of the bar that is shown. */
  says: string;
  count: number;
  shown: number;
  onRead: (index: number | null) => void;
}

function Reader({ title, says, count, shown, onRead }: ReaderProps) {
  const point = ({ clientX, currentTarget }: PointerEvent & { currentTarget: HTMLInputElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    onRead(Math.min(count - 1, Math.max(0, Math.floor(((clientX - left) / width) * count))));
  };
  return (
    <input
      type="range"
      aria-label={title}
      aria-valuetext={says}
      min={0}
      max={count - 1}
      value={shown}
      onInput={({ currentTarget }) => onRead(Number(currentTarget.value))}
      onPointerMove={point}
      onPointerLeave={() => onRead(null)}
      onBlur={() => onRead(null)}
    />
  );
}

/** The smallest of 1, 2, 4, 6 and 8 with noughts that is no less: the half of each is round too. */
function topOf(most: number): number {
  if (most === 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(most));
  return unit * ([1, 2, 4, 6, 8].find((times) => times * unit >= most) ?? 10);
}
