package boxoffice

import "testing"

func TestDelayIsBoundedForEachAttempt(t *testing.T) {
	for attempt := 1; attempt < 100; attempt++ {
		if delay := retryDelay(attempt, nil); delay < firstDelay || delay > maxDelay {
			t.Errorf("attempt %d: %s", attempt, delay)
		}
	}
}
