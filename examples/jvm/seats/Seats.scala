import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.Duration

/** Sells seats; somebody forgot that futures of one execution context run on several threads. */
final class Seats {
  private var guarded = 0
  private var sold = 0

  def sell(): Unit = {
    synchronized { guarded += 1 }
    sold += 1
  }

  override def toString = s"$guarded guarded, $sold in all"
}

object Seats {
  def main(arguments: Array[String]): Unit = {
    given ExecutionContext = ExecutionContext.global
    val seats = new Seats
    val sellers = List.fill(2) {
      Future {
        // Keeps a thread busy, so that the other future needs another one.
        Thread.sleep(200)
        seats.sell()
      }
    }
    Await.result(Future.sequence(sellers), Duration.Inf)
    println(seats)
  }
}
