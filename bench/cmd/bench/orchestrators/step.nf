// One task of the sequence. Nextflow calls a process once under each name.
process step {
    input:
    path before, stageAs: 'before/*'

    output:
    path "step.txt"

    script:
    """
    python3 ${projectDir}/work.py step ${params.n} ${before} > step.txt
    """
}
