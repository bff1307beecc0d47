/**
 * Exports a span of every request over OTLP (HTTP with JSON), to where the `OTEL_*` variables say. Spans have names, numbers and ids,
 * never contents.
 *
 * `cli/serve.ts` loads this, for `cairn mcp` too, only when a collector is named. What a collector does not take in time is dropped: at
 * most 2,048 spans wait.
 *
 * @module
 */
import { diag, DiagLogLevel, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, type Attributes, type Context } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from "@opentelemetry/resources";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { AnsweredRequest } from "../http/exchange.ts";
import type { Clock } from "../lib/clock.ts";
import { describeError, type Log } from "../lib/log.ts";

export interface Telemetry {
  readonly record: (request: AnsweredRequest) => void;
  /** Exports what waits, as far as the collector takes it in time. */
  close(): Promise<void>;
}

/** A collector is near: one that takes longer would hold up a stop, where an export under way is waited for. */
const EXPORT_TIMEOUT_MS = 3_000;
const WARNING_EVERY_MS = 60_000;

export function openTelemetry({ clock, log, version }: { clock: Clock; log: Log; version: string }): Telemetry {
  diag.setLogger(warner(clock, log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const own = resourceFromAttributes({ "service.name": "cairn", "service.version": version });
  const provider = new BasicTracerProvider({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
    resource: defaultResource()
      .merge(own)
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ timeoutMillis: EXPORT_TIMEOUT_MS }))],
  });
  const tracer = provider.getTracer("cairn", version);
  return {
    record(request) {
      const { method, route, status, ms, traceparent } = request;
      const endTime = clock.now();
      const options = { kind: SpanKind.SERVER, startTime: endTime - ms, attributes: attributesOf(request) };
      try {
        const span = tracer.startSpan(`${method} ${route}`, options, parentOf(traceparent));
        if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end(endTime);
      } catch (error) {
        // The request is answered, and may have changed something: whatever fails here is no failure of it.
        log.debug("could not record a span", { error: describeError(error) });
      }
    },
    async close() {
      const ended = new AbortController();
      await Promise.race([provider.shutdown().catch(() => undefined), clock.sleep(EXPORT_TIMEOUT_MS, ended.signal)]);
      ended.abort();
    },
  };
}

/** By the semantic conventions of HTTP and of generative AI. */
function attributesOf({ method, route, status, requestId, key, memoryOperation, sessionId }: AnsweredRequest): Attributes {
  return {
    "http.request.method": method,
    "http.route": route,
    "http.response.status_code": status,
    ...(status >= 500 ? { "error.type": String(status) } : {}),
    ...(memoryOperation === undefined ? {} : { "gen_ai.operation.name": memoryOperation }),
    ...(sessionId === undefined ? {} : { "gen_ai.conversation.id": sessionId }),
    ...(key === undefined ? {} : { "cairn.api_key": key }),
    "cairn.request_id": requestId,
  };
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The caller's span, by the header of W3C Trace Context; none where it makes no sense. */
function parentOf(traceparent: string | null): Context {
  const [, traceId = "", spanId = "", flags = ""] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (/^0*$/.test(traceId) || /^0*$/.test(spanId)) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true });
}

/** A collector that is down would fill the log: one warning a minute is enough. */
function warner(clock: Clock, log: Log) {
  let warnedAt = -Infinity;
  const warn = (message: string) => {
    if (clock.elapsed() - warnedAt < WARNING_EVERY_MS) return;
    warnedAt = clock.elapsed();
    log.warn("could not export spans to the collector of OTEL_EXPORTER_OTLP_ENDPOINT", { reason: message.slice(0, 500) });
  };
  const silent = () => undefined;
  return { error: warn, warn, info: silent, debug: silent, verbose: silent };
}
