# Mocked values have the form that AWS gives them, because the provider parses ARNs and
# policies even in a test. The mocks are repeated in each file, because OpenTofu has no
# mock_provider that reads them from a folder.
mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }

  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }

  mock_data "aws_region" {
    defaults = { region = "eu-west-1" }
  }

  mock_resource "aws_sqs_queue" {
    defaults = {
      arn = "arn:aws:sqs:eu-west-1:123456789012:queue"
      url = "https://sqs.eu-west-1.amazonaws.com/123456789012/queue"
    }
  }

  mock_resource "aws_dynamodb_table" {
    defaults = {
      arn        = "arn:aws:dynamodb:eu-west-1:123456789012:table/table"
      stream_arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026-01-01T00:00:00.000"
    }
  }

  mock_resource "aws_secretsmanager_secret" {
    defaults = {
      id  = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
    }
  }

  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::123456789012:role/role" }
  }

  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
  }

  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function", version = "7" }
  }

  mock_resource "aws_lambda_alias" {
    defaults = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:function:live" }
  }

  mock_resource "aws_lambda_event_source_mapping" {
    defaults = { uuid = "00000000-0000-4000-8000-000000000000" }
  }
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

run "a_new_table_may_be_warm" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }

  assert {
    condition     = aws_dynamodb_table.orders.warm_throughput[0].write_units_per_second == 8000 && aws_dynamodb_table.orders.warm_throughput[0].read_units_per_second == 12000
    error_message = "warm_throughput is not used."
  }
}

run "deployed" {
  variables {
    warm_throughput = { read = 12000, write = 8000 }
  }
}

run "a_table_that_has_warmed_up_is_left_alone" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 4000 }
  }

  assert {
    condition     = aws_dynamodb_table.orders.warm_throughput[0].write_units_per_second == 8000
    error_message = "The provider would replace the table to lower its warm throughput."
  }
}
