/**
 * Trying an embedding provider: whether it works, how fast, and what it does with a pair of texts. Nothing is saved.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { api, type EmbeddingTrial } from "../api.ts";
import { number } from "../words.ts";
import { Dialog } from "./dialog.tsx";
import { Form, TextField } from "./form.tsx";

export function TryProvider({ embedding, onClose }: { embedding: object; onClose: () => void }) {
  const query = useSignal("How does the customer prefer to be contacted?");
  const content = useSignal("The customer prefers e-mail to phone calls.");
  const trial = useSignal<EmbeddingTrial | null>(null);
  const submit = async () => {
    trial.value = null;
    trial.value = await api.tryEmbedding({ embedding, query: query.value, content: content.value });
  };
  return (
    <Dialog title="Try the provider" onClose={onClose}>
      <Form submit="Try" onSubmit={submit}>
        <TextField label="Query" name="query" value={query} required />
        <TextField label="Memory" name="content" value={content} rows={2} required />
        <div role="status">{trial.value !== null && <Outcome trial={trial.value} />}</div>
      </Form>
    </Dialog>
  );
}

function Outcome({ trial: { works, reason, score, duration_ms, vector_length, separation } }: { trial: EmbeddingTrial }) {
  if (!works) return <p class="problem">{reason}</p>;
  return (
    <p class="row note">
      <span class="good">✓ works</span>
      {score !== null && (
        <span>
          score <b>{score.toFixed(2)}</b>
        </span>
      )}
      {duration_ms !== null && <span>{duration_ms.toFixed(1)} ms</span>}
      {vector_length !== null && <span>vectors of {number(vector_length)} numbers</span>}
      {separation !== null && <span>tells {Math.round(separation * 100)} % of known texts apart</span>}
    </p>
  );
}
