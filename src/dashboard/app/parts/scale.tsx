/**
 * A scale at the side of a long session: its whole time from end to end, with a mark where one reads. The timeline starts where it is
 * moved to, so that no entry in between is read.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Session } from "../api.ts";
import { exactTime, Time } from "./time.tsx";

/** Place below the top of the window whose entry is the one that is read. */
const READ_AT_PX = 160;

export function Scale({ session, order }: { session: Session; order: "asc" | "desc" }) {
  const [from, until] = [Date.parse(session.created_at), Date.parse(session.updated_at)];
  const at = useSignal(order === "asc" ? from : until);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let frame = 0;
    const look = () => {
      frame = 0;
      const box = element.current?.previousElementSibling?.getBoundingClientRect();
      const entry = box && document.elementFromPoint(box.left + box.width / 2, Math.max(READ_AT_PX, box.top + 1))?.closest("[data-row]");
      const time = Date.parse(entry?.querySelector("time")?.dateTime ?? "");
      if (!Number.isNaN(time)) at.value = time;
    };
    const onScroll = () => void (frame ||= requestAnimationFrame(look));
    addEventListener("scroll", onScroll, { passive: true });
    return () => {
      removeEventListener("scroll", onScroll);
      cancelAnimationFrame(frame);
    };
  }, []);
  const go = (time: number) => {
    location.hash = `at-${time}`;
    element.current?.parentElement?.scrollIntoView();
  };
  const [top, bottom] = order === "asc" ? [session.created_at, session.updated_at] : [session.updated_at, session.created_at];
  return (
    <div ref={element} class="time-scale quiet">
      <Time at={top} />
      <input
        type="range"
        class={order}
        aria-label="Time in the session"
        aria-orientation="vertical"
        aria-valuetext={exactTime(new Date(at.value).toISOString())}
        title={exactTime(new Date(at.value).toISOString())}
        min={from}
        max={until}
        step={1}
        value={Math.min(until, Math.max(from, at.value))}
        onInput={({ currentTarget }) => (at.value = Number(currentTarget.value))}
        onChange={({ currentTarget }) => go(Number(currentTarget.value))}
      />
      <Time at={bottom} />
    </div>
  );
}
