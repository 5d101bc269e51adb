# fish completion for esker(1): the program says itself what fits, so that it always knows.

function __esker_complete
    set -l words (commandline -opc)
    # Quoted: nothing typed yet is a word too.
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$current"
        else
            printf '%s\n' $line
        end
    end
end

complete -c esker -f -a '(__esker_complete)'
