package run_test

import (
	"path/filepath"
	"testing"

	"orderonce/scripts/lab/storm/run"
)

func TestOrdersThatAreSettledWithoutAMessageAreCounted(t *testing.T) {
	t.Parallel()
	got, err := run.SettledLater(filepath.Join(t.TempDir(), "function.log"),
		`{"message":"webhook","order_id":"storm-000001","result":"settled","status":200}`,
		`{"message":"webhook","order_id":"storm-000002","result":"unavailable","error":"settle order: no response"}`,
		`{"message":"reconciled","results":{"settled":3,"unchanged":4},"more":false}`,
		`{"message":"reconciled","results":{"unchanged":4},"more":false}`,
		`{"message":"order","order_id":"storm-000003","verdict":"done","reason":"settled"}`,
		`panic: settled`,
	)
	if err != nil || got != 4 {
		t.Errorf("got %d, %v, want 4: one by a webhook, three by reconcile", got, err)
	}
}
