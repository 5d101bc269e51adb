# bash completion for esker(1)

_esker_stores() {
  local home="${ESKER_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/esker}" file
  for file in "$home"/*/esker; do
    [[ -f $file ]] && basename "$(dirname "$file")"
  done
}

_esker() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
  local verbs="info ls match stat ps log verify reap session import export"
  verbs+=" create rm evict trim destroy help"
  verbs+=" convert cat"
  verbs+=" diff merge split repack backup restore check prune"
  verbs+=" resize maintain config"
  local session_verbs="ls show rm fork rename keep"
  local common="--store --json --quiet --bytes --color --help"
  local change="--dry-run --yes"
  local prompt="--ids --first --namespace"
  local codec="--codec --level --threads" file="--output --force"
  local taking="--namespace --assume-same --no-sessions --replace-sessions --threads --capacity"
  taking+=" --cold --group --segment-size"
  local verb="" word own=""
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] && continue
    verb+="${verb:+ }$word"
    # Only these two go on with another command.
    [[ $word == help || $word == session ]] || break
  done
  COMPREPLY=()

  case "$previous" in
    --ids | --like | --model-file | --output | -o)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      return
      ;;
    --color) mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current"); return ;;
    --sort)
      word="age tokens bytes"
      [[ $verb == session* ]] && word="used name tokens"
      mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
      return
      ;;
    --format)
      word="esnap llama"
      [[ $verb == export ]] && word="esnap llama llama-session safetensors"
      mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
      return
      ;;
    --from | --to)
      if [[ $verb == convert ]]; then
        word="llama llama-session esnap store safetensors"
        mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
        return
      fi
      ;;
    --plane) mapfile -t COMPREPLY < <(compgen -W "key value" -- "$current"); return ;;
    --codec) mapfile -t COMPREPLY < <(compgen -W "raw lz4 zstd" -- "$current"); return ;;
    --lossy) mapfile -t COMPREPLY < <(compgen -W "q8 q4" -- "$current"); return ;;
    --all) mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    --dtype)
      mapfile -t COMPREPLY < <(
        compgen -W "f32 f16 bf16 f8_e4m3 f8_e5m2 i8 q8_0 q4_0" -- "$current")
      return
      ;;
    --store | -s) mapfile -t COMPREPLY < <(compgen -W "$(_esker_stores)" -- "$current"); return ;;
  esac

  case "$verb" in
    ls) own="--sort" ;;
    match) own="$prompt" ;;
    log) own="--follow --since" ;;
    "session ls") own="--sort" ;;
    "session rm") own="--expired $change" ;;
    "session keep") own="--keep-max --off" ;;
    import)
      own="--format --model --model-file --assume-model --session --set --ttl --priority --create"
      own+=" $taking"
      ;;
    convert)
      own="--from --to --like --arch --file-version --path --session $prompt"
      own+=" --model --model-file --assume-model --force"
      ;;
    cat) own="--layer --plane --range $prompt --session --output --force" ;;
    export) own="--format --like --arch $prompt --session --lossy $codec $file" ;;
    diff) own="--namespace" ;;
    merge) own="$codec $file" ;;
    split) own="--session $codec $file" ;;
    repack) own="--lossy $codec $file" ;;
    backup) own="--all $codec $file" ;;
    restore) own="$taking" ;;
    create)
      own="--layers --kv-heads --head-dim --dtype --like --block-tokens --model --model-file"
      own+=" --capacity --group --seats --segment-size"
      ;;
    rm | destroy) own="$change" ;;
    evict | prune) own="--to --older-than $change" ;;
    trim) own="--keep-free $change" ;;
    resize) own="--capacity --cold $change" ;;
    maintain) own="--all --freeze-after --dry-run" ;;
    config) own="--budget --keep-free" ;;
    "") own="--version" ;;
  esac

  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$own $common" -- "$current")
  elif [[ -z $verb || $verb == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
  elif [[ $verb == session || $verb == "help session" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$session_verbs" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$(_esker_stores)" -- "$current"; compgen -f -- "$current")
  fi
}

complete -F _esker esker
