mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  package_dir       = "tests/packages"
  stripe_secret_key = "sk_test_canary"
}

run "the_table_cannot_be_deleted_by_mistake" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.deletion_protection_enabled
    error_message = "Deletion protection is off: the rows are what keeps an order from being charged twice."
  }
}

run "the_table_can_be_restored" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.point_in_time_recovery[0].enabled
    error_message = "Point-in-time recovery is off."
  }
}

run "only_history_expires" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.ttl[0].enabled && aws_dynamodb_table.orders.ttl[0].attribute_name == "expiresAt"
    error_message = "Only expiresAt, which event rows alone carry, may end a row."
  }
}

run "changes_leave_by_the_stream" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.stream_enabled && aws_dynamodb_table.orders.stream_view_type == "NEW_IMAGE"
    error_message = "The stream has to carry new images."
  }
}

run "waiting_orders_are_in_the_index" {
  command = plan

  assert {
    condition = [for index in aws_dynamodb_table.orders.global_secondary_index : {
      name = index.name, projection = index.projection_type, keys = [for key in index.key_schema : "${key.attribute_name} ${key.key_type}"]
    }] == [{ name = "open", projection = "KEYS_ONLY", keys = ["openShard HASH", "dueAt RANGE"] }]
    error_message = "Want one index, open: openShard, dueAt, keys only."
  }
}

run "nobody_pays_for_an_idle_table" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.orders.billing_mode == "PAY_PER_REQUEST"
    error_message = "The table is not billed on demand."
  }
}
