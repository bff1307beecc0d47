/**
 * The encoder and the comparison of vectors for JavaScript. What C++ throws is thrown there, also for want of memory (`NODE_ADDON_API_CPP_EXCEPTIONS_ALL`).
 *
 * Each thread that loads it has classes and encoders of its own; they share the weights.
 */
#include <napi.h>

#include "encoder.h"
#include "rows.h"

namespace {

const Kernels* kernelsNamed(const std::string& name) {
  for (const Kernels* const kernels : supportedKernels())
    if (kernels->name == name) return kernels;
  throw std::runtime_error("This processor has no kernels " + name + ".");
}

std::vector<FilePart> partsFrom(const Napi::Array& list) {
  std::vector<FilePart> parts;
  for (uint32_t i = 0; i < list.Length(); i++) {
    const Napi::Object part = list.Get(i).As<Napi::Object>();
    const auto number = [&](const char* const name) { return static_cast<uint64_t>(part.Get(name).As<Napi::Number>().Int64Value()); };
    parts.push_back({part.Get("path").As<Napi::String>().Utf8Value(), number("offset"), number("bytes")});
  }
  return parts;
}

Napi::Float32Array vectorOf(const Napi::Env env, const Encoder& encoder, const Encoder::Run& run) {
  Napi::Float32Array vector = Napi::Float32Array::New(env, WIDTH);
  run.result(encoder, vector.Data());
  return vector;
}

class RunObject : public Napi::ObjectWrap<RunObject> {
public:
  static Napi::Function define(const Napi::Env env) {
    return DefineClass(env, "Run",
                       {InstanceMethod<&RunObject::step>("step"), InstanceMethod<&RunObject::result>("result"),
                        InstanceMethod<&RunObject::close>("close")});
  }

  explicit RunObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<RunObject>(info) {}

  void hold(std::shared_ptr<Encoder> encoder, Encoder::Run run) {
    encoder_ = std::move(encoder);
    run_ = std::move(run);
  }

private:
  std::shared_ptr<Encoder> encoder_;
  std::optional<Encoder::Run> run_;

  Encoder::Run& open() {
    if (!run_) throw std::runtime_error("This run is closed.");
    return *run_;
  }

  Napi::Value step(const Napi::CallbackInfo& info) { return Napi::Boolean::New(info.Env(), open().step(*encoder_)); }

  Napi::Value result(const Napi::CallbackInfo& info) {
    if (!open().isDone()) throw std::runtime_error("This run has layers before it.");
    return vectorOf(info.Env(), *encoder_, *run_);
  }

  void close(const Napi::CallbackInfo&) {
    run_.reset();
    encoder_.reset();
  }
};

/** State of the add-on in a thread. */
struct Classes {
  Napi::FunctionReference run;
};

class EncoderObject : public Napi::ObjectWrap<EncoderObject> {
public:
  static Napi::Function define(const Napi::Env env) {
    return DefineClass(env, "Encoder",
                       {InstanceMethod<&EncoderObject::encode>("encode"), InstanceMethod<&EncoderObject::begin>("begin"),
                        InstanceMethod<&EncoderObject::pieces>("pieces"), InstanceMethod<&EncoderObject::tokens>("tokens"),
                        InstanceAccessor<&EncoderObject::kernels>("kernels")});
  }

  /** Arguments: parts of the weights, and the name of kernels, or undefined for the best. */
  explicit EncoderObject(const Napi::CallbackInfo& info)
      : Napi::ObjectWrap<EncoderObject>(info),
        encoder_(std::make_shared<Encoder>(Weights::open(partsFrom(info[0].As<Napi::Array>())),
                                           info[1].IsString() ? kernelsNamed(info[1].As<Napi::String>().Utf8Value()) : nullptr)) {}

private:
  const std::shared_ptr<Encoder> encoder_;

  /** Arguments: the text, and whether it is a query. */
  static std::optional<Encoder::Run> beginning(const Napi::CallbackInfo& info, const Encoder& encoder) {
    const std::u16string text = info[0].As<Napi::String>().Utf16Value();
    return encoder.begin(text, kindOf(info));
  }

  static Kind kindOf(const Napi::CallbackInfo& info) { return info[1].As<Napi::Boolean>().Value() ? Kind::query : Kind::passage; }

  Napi::Value encode(const Napi::CallbackInfo& info) {
    std::optional<Encoder::Run> run = beginning(info, *encoder_);
    if (!run) return info.Env().Undefined();
    while (!run->step(*encoder_)) continue;
    return vectorOf(info.Env(), *encoder_, *run);
  }

  Napi::Value begin(const Napi::CallbackInfo& info) {
    std::optional<Encoder::Run> run = beginning(info, *encoder_);
    if (!run) return info.Env().Undefined();
    const Napi::Object object = info.Env().GetInstanceData<Classes>()->run.New({});
    RunObject::Unwrap(object)->hold(encoder_, std::move(*run));
    return object;
  }

  Napi::Value pieces(const Napi::CallbackInfo& info) {
    const std::vector<Piece> pieces = encoder_->pieces(info[0].As<Napi::String>().Utf16Value());
    const Napi::Env env = info.Env();
    Napi::Uint32Array starts = Napi::Uint32Array::New(env, pieces.size());
    Napi::Uint32Array ends = Napi::Uint32Array::New(env, pieces.size());
    Napi::Float32Array costs = Napi::Float32Array::New(env, pieces.size());
    for (size_t i = 0; i < pieces.size(); i++) {
      starts[i] = pieces[i].begin;
      ends[i] = pieces[i].end;
      costs[i] = pieces[i].cost;
    }
    const Napi::Object result = Napi::Object::New(env);
    result.Set("starts", starts);
    result.Set("ends", ends);
    result.Set("costs", costs);
    return result;
  }

  Napi::Value tokens(const Napi::CallbackInfo& info) {
    const std::vector<uint32_t> tokens = encoder_->tokens(info[0].As<Napi::String>().Utf16Value(), kindOf(info));
    Napi::Uint32Array array = Napi::Uint32Array::New(info.Env(), tokens.size());
    std::copy(tokens.begin(), tokens.end(), array.Data());
    return array;
  }

  Napi::Value kernels(const Napi::CallbackInfo& info) { return Napi::String::New(info.Env(), encoder_->kernels().name); }
};

/** @returns names of the kernels that this processor supports, the best first */
Napi::Value kernelNames(const Napi::CallbackInfo& info) {
  const Napi::Array names = Napi::Array::New(info.Env());
  for (const Kernels* const kernels : supportedKernels()) names.Set(names.Length(), kernels->name);
  return names;
}

Napi::Object initialise(const Napi::Env env, const Napi::Object exports) {
  Classes* const classes = new Classes;
  classes->run = Napi::Persistent(RunObject::define(env));
  env.SetInstanceData(classes);
  exports.Set("Encoder", EncoderObject::define(env));
  exports.Set("RowComparer", RowComparer::define(env));
  exports.Set("kernelNames", Napi::Function::New(env, kernelNames));
  return exports;
}

} // namespace

NODE_API_MODULE(cairn_encoder, initialise)
