package lambdatest_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"orderonce/adapters/lambda/lambdatest"
)

func TestAFrozenInvocationRunsOnAfterItsDeadline(t *testing.T) {
	t.Parallel()
	var got history
	began := make(starts, 1)
	host := start(t, lambdatest.Options{Timeout: time.Second, Output: began, Observe: got.observe})
	end := filepath.Join(t.TempDir(), "end")
	payload := do("until", end)
	done := invoke(t, host, payload)
	pid := <-began
	if n := host.Freeze(1500*time.Millisecond, nil); n != 1 {
		t.Fatalf("Freeze = %d, want 1", n)
	}
	await(t, "the instance is frozen", func() bool { return stopped(t, pid) })
	touch(t, end)
	if err := <-done; err != nil {
		t.Errorf("error = %v, want none: the deadline passed while the instance was frozen", err)
	}
	want := []string{"1 started", "1 invoked", "1 frozen", "1 thawed", "1 answered"}
	if diff := cmp.Diff(got.changes(), want); diff != "" || !bytes.Equal(got.events[2].Payload, payload) {
		t.Errorf("frozen in %s, want %s (-got +want):\n%s", got.events[2].Payload, payload, diff)
	}
	await(t, "the idle instance is frozen", func() bool { return stopped(t, pid) })
}

func TestFreezeStopsTheMatchingInvocationsOnce(t *testing.T) {
	t.Parallel()
	began := make(starts, 2)
	host := start(t, lambdatest.Options{Instances: 3, Output: began})
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	killed := invoke(t, host, do("until", one))
	first := <-began
	done := invoke(t, host, do("until", other))
	<-began
	ask(t, host, do("echo", "")) // an instance that is idle
	match := func(payload []byte) bool { return bytes.Contains(payload, []byte(one)) }
	if n := host.Freeze(time.Hour, match); n != 1 {
		t.Errorf("Freeze = %d, want 1: the matching invocation", n)
	}
	await(t, "the matching instance is frozen", func() bool { return stopped(t, first) })
	if n := host.Freeze(time.Hour, match); n != 0 {
		t.Errorf("second Freeze = %d, want 0: the instance is frozen already", n)
	}
	touch(t, other)
	must(t, <-done)
	host.Kill(match) // ends a frozen instance at once
	if err := <-killed; !errors.Is(err, lambdatest.ErrCrashed) {
		t.Errorf("error = %v, want ErrCrashed", err)
	}
	if n := host.Freeze(time.Hour, nil); n != 0 {
		t.Errorf("Freeze = %d, want 0: no invocation runs", n)
	}
}
