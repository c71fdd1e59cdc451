// The fan-out.
process count {
    input:
    path file

    output:
    path "${file.baseName}.count"

    script:
    """
    python3 ${projectDir}/work.py count ${file} > ${file.baseName}.count
    """
}

process gather {
    publishDir projectDir, mode: 'copy'

    input:
    path counts

    output:
    path "out.txt"

    script:
    """
    python3 ${projectDir}/work.py gather ${counts} > out.txt
    """
}

workflow {
    Channel.fromPath("${projectDir}/files/*.txt") | count | collect | gather
}
