mock_provider "aws" {
  source = "./tests/mocks"
}

# Distinct ARNs, so that a permission for the orders table fails.
override_resource {
  target = aws_dynamodb_table.stock
  values = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/stock" }
}

variables {
  stock_tracking           = true
  create_operator_policies = true
}

run "without_the_variable_nothing_tracks_stock" {
  variables {
    stock_tracking = null
  }

  assert {
    condition     = length(aws_dynamodb_table.stock) == 0 && output.stock_table == null
    error_message = "stock_tracking: must be off by default"
  }

  assert {
    condition = alltrue([for function in aws_lambda_function.functions :
      length(setintersection(["STOCK_TABLE", "STOCK_HOLD"], keys(function.environment[0].variables))) == 0
    ])
    error_message = "environment: a function tracks stock"
  }

  assert {
    condition = alltrue([for policy in [
      aws_iam_role_policy.order.policy, aws_iam_role_policy.webhook[0].policy,
      aws_iam_role_policy.reconcile.policy, aws_iam_policy.operator_read[0].policy,
      aws_iam_policy.operator_repair[0].policy,
    ] : !strcontains(policy, "Stock") && !strcontains(policy, "LoadDeclinedOrders")])
    error_message = "a policy has a statement on the stock table"
  }

  assert {
    condition     = !strcontains(output.operator_environment, "STOCK_TABLE")
    error_message = "operator_environment: names a table that does not exist"
  }
}

run "the_table_has_a_row_per_sku" {
  command = plan

  assert {
    condition = (
      aws_dynamodb_table.stock[0].name == "orderonce-dev-stock"
      && aws_dynamodb_table.stock[0].hash_key == "sku"
      && aws_dynamodb_table.stock[0].range_key == null
      && [for a in aws_dynamodb_table.stock[0].attribute : "${a.name} ${a.type}"] == ["sku S"]
      && length(aws_dynamodb_table.stock[0].global_secondary_index) == 0
    )
    error_message = "table: the only key must be sku"
  }

  assert {
    condition     = aws_dynamodb_table.stock[0].billing_mode == "PAY_PER_REQUEST"
    error_message = "billing_mode: must be PAY_PER_REQUEST"
  }
}

run "the_table_is_protected_and_its_rows_never_expire" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.stock[0].deletion_protection_enabled
    error_message = "deletion_protection_enabled: must be on, or stock_tracking = false deletes the stock"
  }

  assert {
    condition     = aws_dynamodb_table.stock[0].point_in_time_recovery[0].enabled
    error_message = "point_in_time_recovery: must be on"
  }

  assert {
    condition     = length(aws_dynamodb_table.stock[0].ttl) == 0
    error_message = "ttl: a row that expires loses its stock"
  }
}

run "deletion_protection_can_be_turned_off" {
  command = plan

  variables {
    deletion_protection = false
  }

  assert {
    condition     = !aws_dynamodb_table.stock[0].deletion_protection_enabled
    error_message = "deletion_protection: ignored, so destroy would fail"
  }
}

run "the_functions_that_write_orders_get_the_table" {
  assert {
    condition = jsonencode({ for name, function in aws_lambda_function.functions : name => {
      for variable, value in function.environment[0].variables :
      variable => value if startswith(variable, "STOCK_")
      } }) == jsonencode({
      order     = { STOCK_TABLE = "orderonce-dev-stock" }
      publish   = {}
      reconcile = { STOCK_TABLE = "orderonce-dev-stock", STOCK_HOLD = "24h" }
      webhook   = { STOCK_TABLE = "orderonce-dev-stock" }
    })
    error_message = "environment: one of order, webhook, reconcile would leak goods, or publish needs none"
  }

  assert {
    condition = (
      output.stock_table == "orderonce-dev-stock"
      && strcontains(output.operator_environment, "\nexport STOCK_TABLE=orderonce-dev-stock\n")
    )
    error_message = "outputs: the operator's tool would cancel orders without releasing goods"
  }
}

run "the_hold_can_be_changed" {
  command = plan

  variables {
    stock_hold_hours = 2
  }

  assert {
    condition     = aws_lambda_function.functions["reconcile"].environment[0].variables.STOCK_HOLD == "2h"
    error_message = "stock_hold_hours: ignored"
  }
}

run "whoever_writes_orders_may_update_the_stock_and_nothing_else" {
  assert {
    condition = alltrue([for policy in [
      aws_iam_role_policy.order.policy, aws_iam_role_policy.webhook[0].policy,
      aws_iam_role_policy.reconcile.policy, aws_iam_policy.operator_repair[0].policy,
      ] : jsonencode([for s in jsondecode(policy).Statement : [s.Sid, s.Effect, s.Action]
        if s.Sid != "ReadStock" && strcontains(jsonencode(s.Resource), "table/stock")
      ]) == jsonencode([["MoveStock", "Allow", "dynamodb:UpdateItem"]])
    ])
    error_message = "policies: must allow UpdateItem on the stock table, and nothing else there"
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_role_policy.order.policy).Statement :
      [s.Action, s.Resource] if s.Sid == "LoadDeclinedOrders"
    ]) == jsonencode([["dynamodb:Query", "arn:aws:dynamodb:eu-west-1:123456789012:table/table"]])
    error_message = "order: could not cancel a declined order, whose goods would stay reserved"
  }

  assert {
    condition     = !strcontains(aws_iam_role_policy.publish.policy, "table/stock")
    error_message = "publish: needs no access to the stock"
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement :
      [s.Sid, s.Effect, s.Action, s.Resource] if strcontains(jsonencode(s.Resource), "table/stock")
      ]) == jsonencode([
      ["ReadStock", "Allow", "dynamodb:GetItem", "arn:aws:dynamodb:eu-west-1:123456789012:table/stock"],
    ])
    error_message = "operator-read: must read a row of the stock, and change none"
  }
}

# Last, because pins.tf keeps the key.
run "the_table_is_encrypted_with_the_given_key" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = (
      aws_dynamodb_table.stock[0].server_side_encryption[0].enabled
      && aws_dynamodb_table.stock[0].server_side_encryption[0].kms_key_arn == var.kms_key_arn
    )
    error_message = "server_side_encryption: must use kms_key_arn"
  }
}
