package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"orderonce/scripts/jobs"
)

const stockFile = "examples/stock.json"

// stock returns the units of each SKU: those of stockFile, and a million of each
// other SKU that is ordered.
func (all stages) stock() (map[string]int64, error) {
	text, err := os.ReadFile(stockFile)
	if err != nil {
		return nil, err
	}
	units := map[string]int64{}
	if err := json.Unmarshal(text, &units); err != nil {
		return nil, fmt.Errorf("%s: %w", stockFile, err)
	}
	decoder := jobs.NewDecoder()
	for _, s := range all {
		for _, body := range slices.Concat(s.waves...) {
			j, _ := decoder.Decode(body) // what is not an order has no SKUs
			for sku := range j.Order.Quantities() {
				if _, known := units[sku]; !known {
					units[sku] = 1_000_000
				}
			}
		}
	}
	return units, nil
}
