import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/** Counts visitors; somebody forgot that coroutines of one dispatcher run on several threads. */
class Visits {
    private val mutex = Mutex()
    private var guarded = 0
    private var total = 0

    suspend fun visit() {
        mutex.withLock { guarded++ }
        total++
    }

    override fun toString() = "$guarded guarded, $total in all"
}

fun main() = runBlocking {
    val visits = Visits()
    List(2) {
        launch(Dispatchers.Default) {
            // Keeps a thread busy, so that the other coroutine needs another one.
            Thread.sleep(200)
            visits.visit()
        }
    }.joinAll()
    println(visits)
}
