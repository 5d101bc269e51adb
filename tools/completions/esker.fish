# fish completion for esker(1)

function __esker_stores
    set -l home $ESKER_HOME
    if test -z "$home"
        set -l cache $XDG_CACHE_HOME
        test -z "$cache"; and set cache $HOME/.cache
        set home $cache/esker
    end
    for file in $home/*/esker
        basename (dirname $file)
    end
end

function __esker_in
    __fish_seen_subcommand_from $argv
end

function __esker_session_verb
    __esker_in session; and not __esker_in ls show rm fork rename keep
end

complete -c esker -f
complete -c esker -n '__fish_use_subcommand' -l version -d 'Show the versions'
complete -c esker -n __fish_use_subcommand -a info -d "Show what a store is made for"
complete -c esker -n __fish_use_subcommand -a ls -d "List stores, or the paths in one"
complete -c esker -n __fish_use_subcommand -a match -d "Tell how many leading tokens are stored"
complete -c esker -n __fish_use_subcommand -a stat -d "Show what a store holds, and its counters"
complete -c esker -n __fish_use_subcommand -a ps -d "Show which processes have a store open"
complete -c esker -n __fish_use_subcommand -a log -d "Show what happened"
complete -c esker -n __fish_use_subcommand -a verify -d "Check every byte"
complete -c esker -n __fish_use_subcommand -a reap -d "Clean up after dead processes"
complete -c esker -n __fish_use_subcommand -a session -d "Look after sessions"
complete -c esker -n __fish_use_subcommand -a import -d "Store an engine's file"
complete -c esker -n __fish_use_subcommand -a export -d "Write a prefix as a file"
complete -c esker -n __fish_use_subcommand -a convert -d "Make another kind of file of one"
complete -c esker -n __fish_use_subcommand -a cat -d "Write the rows of one layer for numpy"
complete -c esker -n __fish_use_subcommand -a create -d "Make a store"
complete -c esker -n __fish_use_subcommand -a rm -d "Forget paths"
complete -c esker -n __fish_use_subcommand -a evict -d "Free what was not used for longest"
complete -c esker -n __fish_use_subcommand -a trim -d "Return disk space"
complete -c esker -n __fish_use_subcommand -a destroy -d "Delete a store"
complete -c esker -n __fish_use_subcommand -a diff -d "Compare stores or snapshots"
complete -c esker -n __fish_use_subcommand -a merge -d "Make one snapshot out of several"
complete -c esker -n __fish_use_subcommand -a split -d "Take sessions out of a snapshot"
complete -c esker -n __fish_use_subcommand -a repack -d "Compress a snapshot in another way"
complete -c esker -n __fish_use_subcommand -a backup -d "Write all sessions as a snapshot"
complete -c esker -n __fish_use_subcommand -a restore -d "Bring a snapshot back"
complete -c esker -n __fish_use_subcommand -a check -d "Check every byte"
complete -c esker -n __fish_use_subcommand -a prune -d "Free what was not used for longest"
complete -c esker -n __fish_use_subcommand -a resize -d "Give a store another capacity"
complete -c esker -n __fish_use_subcommand -a maintain -d "Do once what should be done daily"
complete -c esker -n __fish_use_subcommand -a config -d "What holds for all stores of the home"
complete -c esker -n __fish_use_subcommand -a help -d "Show the help of a command"

complete -c esker -n 'not __fish_use_subcommand' -a '(__esker_stores)' -d Store
complete -c esker -s s -l store -x -a '(__esker_stores)' -d 'The store'
complete -c esker -l json -d 'Answer with one JSON document'
complete -c esker -s q -l quiet -d 'No remarks, no progress'
complete -c esker -l bytes -d 'Print sizes as plain bytes'
complete -c esker -l color -x -a 'auto always never' -d 'When to colour'
complete -c esker -s h -l help -d 'Show the help'

complete -c esker -n '__esker_in ls; and not __esker_in session' -l sort -x \
    -a 'age tokens bytes' -d 'What comes first'

complete -c esker -n '__esker_session_verb' -a ls -d 'List the sessions'
complete -c esker -n '__esker_session_verb' -a show -d 'Show all that is known of one'
complete -c esker -n '__esker_session_verb' -a rm -d 'Forget sessions'
complete -c esker -n '__esker_session_verb' -a fork -d 'Start a new one where another is'
complete -c esker -n '__esker_session_verb' -a rename -d 'Give one another name'
complete -c esker -n '__esker_session_verb' -a keep -d 'Never evict its blocks'
complete -c esker -n '__esker_in session; and __esker_in ls' -l sort -x \
    -a 'used name tokens' -d 'What comes first'
complete -c esker -n '__esker_in session; and __esker_in rm' -l expired -d 'Whose life is over'
complete -c esker -n '__esker_in session; and __esker_in keep' -l keep-max -x -d 'Most of all kept'
complete -c esker -n '__esker_in session; and __esker_in keep' -l off -d 'No longer'

complete -c esker -n '__esker_in match export' -l ids -r -F -d 'Token ids'
complete -c esker -n '__esker_in match export' -l first -x -d 'Only the first N tokens'
complete -c esker -n '__esker_in match import export restore diff' -l namespace -x \
    -d 'Root of the path'
complete -c esker -n '__esker_in log' -s f -l follow -d 'Go on with what happens next'
complete -c esker -n '__esker_in log' -l since -x -d 'After this event'
complete -c esker -n '__esker_in import' -l format -x -a 'esnap llama' -d 'Kind of file'
complete -c esker -n '__esker_in export' -l format -x \
    -a 'esnap llama llama-session safetensors' -d 'Kind of file'
complete -c esker -n '__esker_in export convert' -l arch -x -d 'Architecture, for a session file'
complete -c esker -n '__esker_in convert cat' -F
complete -c esker -n '__esker_in convert' -l from -x \
    -a 'llama llama-session esnap store' -d 'What IN is'
complete -c esker -n '__esker_in convert' -l to -x \
    -a 'llama llama-session esnap store safetensors' -d 'What OUT is to be'
complete -c esker -n '__esker_in convert' -l file-version -x -d 'Version of the result'
complete -c esker -n '__esker_in convert' -l path -x -d 'Which path of IN'
complete -c esker -n '__esker_in convert cat' -l session -x -d 'Which session'
complete -c esker -n '__esker_in convert cat' -l ids -r -F -d 'Token ids'
complete -c esker -n '__esker_in convert cat' -l first -x -d 'Only the first N tokens'
complete -c esker -n '__esker_in convert cat' -l namespace -x -d 'Root of the path'
complete -c esker -n '__esker_in convert' -l like -r -F -d 'A llama.cpp file'
complete -c esker -n '__esker_in convert' -l model -x -d 'A fact: key=value'
complete -c esker -n '__esker_in convert' -l model-file -r -F -d 'The model'
complete -c esker -n '__esker_in convert' -l assume-model -d 'Take it for granted'
complete -c esker -n '__esker_in cat' -l layer -x -d 'The layer'
complete -c esker -n '__esker_in cat' -l plane -x -a 'key value' -d 'Which rows'
complete -c esker -n '__esker_in cat' -l range -x -d 'Only tokens from A up to before B'
complete -c esker -n '__esker_in cat' -s o -l output -r -F -d 'File to write'
complete -c esker -n '__esker_in convert cat' -s f -l force -d 'Replace it'
complete -c esker -n '__esker_in import restore diff merge split repack verify check info' -F
complete -c esker -n '__esker_in import' -l session -x -d 'Keep it as this session'
complete -c esker -n '__esker_in import' -l set -x -d 'A note: key=value'
complete -c esker -n '__esker_in import' -l ttl -x -d 'How long the session lives'
complete -c esker -n '__esker_in import' -l priority -x -d 'Which kept ones come first'
complete -c esker -n '__esker_in export' -l session -x -d 'What is stored of it'
complete -c esker -n '__esker_in split' -l session -x -d 'That is to be in it'
complete -c esker -n '__esker_in import' -l create -d 'Make the store'
complete -c esker -n '__esker_in import restore' -l assume-same -x -d 'Key that may differ'
complete -c esker -n '__esker_in import restore' -l no-sessions -d 'Only rows'
complete -c esker -n '__esker_in import restore' -l replace-sessions -d 'With other tokens too'
complete -c esker -n '__esker_in import restore' -l cold -x -d 'Part of it for cold blocks'
complete -c esker -n '__esker_in import export merge split repack backup restore' -l threads -x \
    -d 'How many at a time'
complete -c esker -n '__esker_in export merge split repack backup' -l codec -x -a 'raw lz4 zstd' \
    -d 'How it is compressed'
complete -c esker -n '__esker_in export merge split repack backup' -l level -x \
    -d 'How hard zstd tries'
complete -c esker -n '__esker_in export repack' -l lossy -x -a 'q8 q4' -d 'Fewer bits'
complete -c esker -n '__esker_in backup' -l all -x -a '(__fish_complete_directories)' \
    -d 'All stores of the home, to this directory'
complete -c esker -n '__esker_in import create' -l model -x -d 'A fact: key=value'
complete -c esker -n '__esker_in import create' -l model-file -r -F -d 'The model'
complete -c esker -n '__esker_in import' -l assume-model -d 'Take it for granted'
complete -c esker -n '__esker_in export create' -l like -r -F -d 'A llama.cpp file'
complete -c esker -n '__esker_in export merge split repack backup' -s o -l output -r -F \
    -d 'File to write'
complete -c esker -n '__esker_in export merge split repack backup' -s f -l force -d 'Replace it'
complete -c esker -n '__esker_in create' -l layers -x -d 'Layers'
complete -c esker -n '__esker_in create' -l kv-heads -x -d 'KV heads'
complete -c esker -n '__esker_in create' -l head-dim -x -d 'Elements per head'
complete -c esker -n '__esker_in create' -l block-tokens -x -d 'Tokens per block'
complete -c esker -n '__esker_in create import restore' -l capacity -x -d 'Cap of all files'
complete -c esker -n '__esker_in create' -l seats -x -d 'Handles at a time'
complete -c esker -n '__esker_in create import restore' -l segment-size -x -d 'Size of a segment'
complete -c esker -n '__esker_in create' -l dtype -x \
    -a 'f32 f16 bf16 f8_e4m3 f8_e5m2 i8 q8_0 q4_0' -d 'Type'
complete -c esker -n '__esker_in create import restore' -l group -d 'For the group too'
complete -c esker -n '__esker_in evict prune' -l to -x -d 'Keep at most'
complete -c esker -n '__esker_in evict prune' -l older-than -x -d 'Last used before'
complete -c esker -n '__esker_in trim' -l keep-free -x -d 'Until so much is free'
complete -c esker -n '__esker_in rm evict prune trim destroy' -s n -l dry-run -d 'Change nothing'
complete -c esker -n '__esker_in rm evict prune trim destroy' -s y -l yes -d 'Do not ask'

complete -c esker -n '__esker_in resize' -l capacity -x -d 'The new cap of all files'
complete -c esker -n '__esker_in resize' -l cold -x -d 'The part for cold blocks'
complete -c esker -n '__esker_in resize maintain' -s n -l dry-run -d 'Change nothing'
complete -c esker -n '__esker_in resize' -s y -l yes -d 'Do not ask'
complete -c esker -n '__esker_in maintain' -l all -d 'All stores of the home'
complete -c esker -n '__esker_in maintain' -l freeze-after -x -d 'Last used before'
complete -c esker -n '__esker_in config' -l budget -x -a none -d 'Most of all stores'
complete -c esker -n '__esker_in config' -l keep-free -x -a default -d 'What growth leaves free'
