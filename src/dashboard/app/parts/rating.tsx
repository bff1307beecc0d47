/**
 * Feedback on what was found: whether each memory or turn helped.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useCan } from "../access.ts";
import { api, type Retrieval } from "../api.ts";
import { toast } from "./toast.tsx";

type Feedback = Retrieval["feedback"];

export interface Rating {
  readonly feedback: Feedback;
  /** Sends what is said of one; said again, it is taken back. */
  readonly rate: (id: string, verdict: "useful" | "not_useful") => void;
}

/** @returns undefined for what is not logged, and for a key that may not write */
export function useRating(retrievalId: string | undefined, given: Feedback = null): Rating | undefined {
  const mayWrite = useCan("write");
  const said = useSignal<Feedback>(given);
  const busy = useSignal(false);
  if (retrievalId === undefined || !mayWrite) return undefined;
  const send = async (id: string, verdict: "useful" | "not_useful") => {
    const { useful = [], not_useful = [], note } = said.value ?? {};
    const before = { useful, not_useful };
    const isTakenBack = before[verdict].includes(id);
    const without = { useful: useful.filter((one) => one !== id), not_useful: not_useful.filter((one) => one !== id) };
    const body = {
      ...without,
      ...(isTakenBack ? {} : { [verdict]: [...without[verdict], id] }),
      ...(typeof note === "string" && { note }),
    };
    busy.value = true;
    try {
      said.value = (await api.rateRetrieval(retrievalId, body)).feedback;
    } catch (error) {
      toast((error as Error).message);
    } finally {
      busy.value = false;
    }
  };
  const rate: Rating["rate"] = (id, verdict) => {
    if (!busy.value) void send(id, verdict);
  };
  return { feedback: said.value, rate };
}

/** Buttons of one memory or turn. */
export function RatingButtons({ id, rating }: { id: string; rating: Rating | undefined }) {
  if (rating === undefined) return null;
  const { feedback, rate } = rating;
  return (
    <span class="row rating" role="group" aria-label="Did it help?">
      <button class="small" aria-pressed={feedback?.useful.includes(id) === true} onClick={() => rate(id, "useful")}>
        Useful
      </button>
      <button class="small" aria-pressed={feedback?.not_useful.includes(id) === true} onClick={() => rate(id, "not_useful")}>
        Not useful
      </button>
    </span>
  );
}
