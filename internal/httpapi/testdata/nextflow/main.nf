// Three samples, a task that is tried again, one whose failure is ignored, and operators between the processes.
params.samples = 'a,b,c'
params.broken = false
params.slow = false

process TRIM {
    tag { sample }
    cpus 1
    memory '64 MB'
    errorStrategy { task.attempt < 3 ? 'retry' : 'terminate' }
    maxRetries 3
    input: val sample
    output: tuple val(sample), path('trimmed.txt')
    script:
    """
    sleep 1
    if [ "$sample" = b ] && [ $task.attempt -lt 2 ]; then echo 'no room left' >&2; exit 137; fi
    echo "$sample <b>trimmed</b>" > trimmed.txt
    """
}

process COUNT {
    tag { sample }
    input: tuple val(sample), path(trimmed)
    output: path('count.txt')
    script:
    """
    wc -c < $trimmed > count.txt
    """
}

process CHECK {
    tag { sample }
    errorStrategy 'ignore'
    input: tuple val(sample), path(trimmed)
    script:
    """
    test "$sample" != c
    """
}

process REPORT {
    input: path('counts/count?.txt')
    output: path('report.txt')
    script:
    """
    ${params.broken ? "echo 'the report cannot be made' >&2; exit 3" : 'cat counts/* > report.txt'}
    """
}

process SLOW {
    input: val x
    script:
    """
    sleep 60
    """
}

workflow QC {
    take: trimmed
    main:
    CHECK(trimmed)
    COUNT(trimmed.filter { it[0] != 'x' })
    emit: COUNT.out
}

workflow {
    trimmed = TRIM(Channel.fromList(params.samples.tokenize(',')))
    QC(trimmed)
    REPORT(QC.out.map { it }.collect())
    if (params.broken || params.slow) { SLOW(QC.out.first().map { 1 }) }
}
