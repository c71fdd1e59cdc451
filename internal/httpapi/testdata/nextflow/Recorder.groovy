// What Nextflow's own observer would send, asked of Nextflow itself: a line of JSON
// for each frame, into the file that FRAMES names.
package recorder

import groovy.json.JsonGenerator
import groovy.transform.CompileDynamic
import java.nio.file.Path
import java.time.Instant
import java.time.OffsetDateTime
import java.time.ZoneOffset
import nextflow.Session
import nextflow.processor.TaskHandler
import nextflow.processor.TaskProcessor
import nextflow.trace.ResourcesAggregator
import nextflow.trace.TraceObserver
import nextflow.trace.TraceObserverFactory
import nextflow.trace.TraceRecord
import nextflow.util.Duration
import nextflow.util.MemoryUnit
import org.pf4j.Extension

@Extension
class Factory implements TraceObserverFactory {
    Collection<TraceObserver> create(Session session) { System.getenv('FRAMES') ? [new Recorder()] : [] }
}

@CompileDynamic
class Recorder implements TraceObserver {
    private Session session
    private ResourcesAggregator usage
    private final List<String> names = []
    private final Map tasks = [:] // the newest state of each that was not sent
    private Thread sender
    private volatile boolean over
    private final File file = new File(System.getenv('FRAMES'))
    private final JsonGenerator json = new JsonGenerator.Options()
        .addConverter(Path) { it.toUriString() }
        .addConverter(Duration) { it.toMillis() }
        .addConverter(MemoryUnit) { it.toBytes() }
        .addConverter(OffsetDateTime) { it.toString() }
        .addConverter(nextflow.NextflowMeta) { [version: it.version.toString(), build: it.build, timestamp: it.timestamp] }
        .addConverter(nextflow.config.Manifest) { it.toMap() }
        .addConverter(nextflow.script.WorkflowMetadata) { null }
        .excludeFieldsByName('nextflow.processor.TaskProcessor', 'metaClass', 'class')
        .build()

    boolean enableMetrics() { true }

    void onFlowCreate(Session session) {
        this.session = session
        usage = new ResourcesAggregator(session)
        def w = session.workflowMetadata
        send('create', [sessionId: session.uniqueId.toString(), runName: session.runName, projectName: w.projectName, repository: w.repository, workflowId: null])
    }

    void onProcessCreate(TaskProcessor process) { names << process.name }

    void onFlowBegin() {
        send('begin', [workflow: workflow().findAll { it.key != "stats" }, processNames: names, dag: dag(), towerLaunch: false])
        sender = Thread.start { while (!over) { sleep(1000); flush() } }
    }

    void onProcessPending(TaskHandler handler, TraceRecord trace) { note(trace) }
    void onProcessSubmit(TaskHandler handler, TraceRecord trace) { note(trace) }
    void onProcessStart(TaskHandler handler, TraceRecord trace) { note(trace) }
    void onProcessComplete(TaskHandler handler, TraceRecord trace) { note(trace); synchronized (this) { usage.aggregate(trace) } }
    void onProcessCached(TaskHandler handler, TraceRecord trace) { if (trace) { note(trace); synchronized (this) { usage.aggregate(trace) } } }
    void onFlowError(TaskHandler handler, TraceRecord trace) { note(trace) }

    void onFlowComplete() {
        over = true
        sender.join()
        flush()
        send('complete', [workflow: workflow(), metrics: usage.computeSummaryList(), progress: progress(session.statsObserver.stats)])
    }

    private synchronized void note(TraceRecord trace) { if (trace) tasks[trace.taskId] = trace }

    private void flush() {
        List some
        synchronized (this) { some = new ArrayList(tasks.values()); tasks.clear() }
        some.collate(100).each { part ->
            send('progress', [tasks: part.collect { task(it) }, progress: progress(session.statsObserver.quickStats)])
        }
    }

    private Map task(TraceRecord trace) {
        def out = [:]
        trace.store.each { String name, value ->
            if (name.startsWith('%')) name = 'p' + name.substring(1)
            def words = name.tokenize('_')
            name = words[0] + words.drop(1)*.capitalize().join('')
            if (TraceRecord.FIELDS[name] == 'date') value = value ? OffsetDateTime.ofInstant(Instant.ofEpochMilli(value as long), ZoneOffset.UTC) : null
            out[name] = value
        }
        out + [executor: trace.executorName, cloudZone: null, machineType: null, priceModel: null]
    }

    private Map workflow() {
        def w = session.workflowMetadata.toMap()
        w.params = session.params
        w.container = w.container instanceof CharSequence ? w.container : null
        w.configText = session.resolvedConfig
        w
    }

    private Map dag() {
        [vertices: session.dag.vertices.collect { v ->
            def parts = (v.label ?: '').tokenize(':')
            [id: v.id, type: v.type.name(), label: v.type.name() == 'PROCESS' ? parts.last() : v.label, scope: parts.size() > 1 ? parts[0..-2].join(':') : null]
         },
         edges: session.dag.edges.collect { e -> [source: e.from?.id, target: e.to?.id, label: e.label] }]
    }

    private static Map progress(stats) {
        def own = ['pending', 'submitted', 'running', 'succeeded', 'failed', 'ignored', 'cached', 'aborted', 'retries', 'loadCpus', 'loadMemory', 'peakRunning', 'peakCpus', 'peakMemory']
        def of = { o -> own.findAll { o.hasProperty(it) || o.metaClass.respondsTo(o, 'get' + it.capitalize()) }.collectEntries { [it, o."$it"] } }
        [pending: stats.pendingCount, submitted: stats.submittedCount, running: stats.runningCount, succeeded: stats.succeededCount, failed: stats.failedCount,
         ignored: stats.ignoredCount, cached: stats.cachedCount, aborted: stats.abortedCount, retries: stats.retriesCount, peakRunning: stats.peakRunning, peakCpus: stats.peakCpus, peakMemory: stats.peakMemory,
         loadCpus: stats.loadCpus, loadMemory: stats.loadMemory,
         processes: stats.processes.collect { p -> [index: p.index, name: p.name] + of(p) + [terminated: p.terminated] }]
    }

    private synchronized void send(String verb, Map frame) {
        frame.instant = Instant.now().toEpochMilli()
        file << json.toJson([verb: verb, body: frame]) + '\n'
    }
}
