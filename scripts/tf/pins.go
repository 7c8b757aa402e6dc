package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// stub stands for the rest of the module: what pins.tf uses of it, all from one variable.
const stub = `
variable "pinned" {
  type = string
}

locals {
  deployment   = { prefix = var.pinned }
  queue_type   = var.pinned
  orders_table = var.pinned
  kms_keys     = [var.pinned]
}
`

// destroyFreely applies pins.tf alone, which needs no provider, and sees that another plan is refused and that destroying is
// not. Terraform's own tests cannot run a destroy with other variables.
func (c checker) destroyFreely(ctx context.Context) error {
	pins, err := c.root.ReadFile("pins.tf")
	if err != nil {
		return err
	}
	alone := c
	alone.dir = filepath.Join(c.dir, "pins")
	if err := errors.Join(c.root.Mkdir("pins", 0o700),
		c.root.WriteFile("pins/pins.tf", pins, 0o600), c.root.WriteFile("pins/stub.tf", []byte(stub), 0o600)); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-no-color"}, {"apply", "-auto-approve", "-no-color", "-var=pinned=one"}} {
		if _, err := alone.terraform(ctx, args...); err != nil {
			return err
		}
	}
	printed, err := alone.terraform(ctx, "plan", "-no-color", "-var=pinned=two")
	if err == nil || !strings.Contains(printed, "This state belongs to") {
		return fmt.Errorf("a plan for another deployment is not refused by its pin:\n%s", printed)
	}
	_, err = alone.terraform(ctx, "destroy", "-auto-approve", "-no-color", "-var=pinned=two")
	return c.passed("the pins refuse another deployment's plan, and let anything be destroyed", err)
}
