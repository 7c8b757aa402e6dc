mock_provider "aws" {
  source = "./tests/mocks"
}

run "a_name_with_capitals_is_rejected" {
  command = plan

  variables {
    name = "OrderOnce"
  }

  expect_failures = [var.name]
}

run "a_name_that_starts_with_a_digit_is_rejected" {
  command = plan

  variables {
    name = "1st"
  }

  expect_failures = [var.name]
}

run "an_environment_with_a_space_is_rejected" {
  command = plan

  variables {
    environment = "prod eu"
  }

  expect_failures = [var.environment]
}

run "a_name_without_room_for_the_hash_is_rejected" {
  command = plan

  variables {
    environment = "sixteen-letters-" # 26 characters with "orderonce-"
  }

  expect_failures = [var.environment]
}

run "a_scope_of_33_characters_is_rejected" {
  command = plan

  variables {
    scope = "a23456789-123456789-123456789-123"
  }

  expect_failures = [var.scope]
}

run "a_scope_with_capitals_is_rejected" {
  command = plan

  variables {
    scope = "Prod"
  }

  expect_failures = [var.scope]
}

run "a_publishable_key_is_rejected" {
  command = plan

  variables {
    stripe_secret_key = "pk_test_canary"
  }

  expect_failures = [var.stripe_secret_key]
}

run "a_secret_version_of_zero_is_rejected" {
  command = plan

  variables {
    stripe_secret_version = 0
  }

  expect_failures = [var.stripe_secret_version]
}

run "a_wildcard_as_producer_is_rejected" {
  command = plan

  variables {
    producer_arns = ["*"]
  }

  expect_failures = [var.producer_arns]
}

run "a_producer_with_a_wildcard_is_rejected" {
  command = plan

  variables {
    producer_arns = ["arn:aws:iam::123456789012:role/*"]
  }

  expect_failures = [var.producer_arns]
}

run "a_rule_with_a_wildcard_is_rejected" {
  command = plan

  variables {
    producer_rule_arns = ["arn:aws:events:eu-west-1:123456789012:rule/*"]
  }

  expect_failures = [var.producer_rule_arns]
}

run "a_role_as_rule_is_rejected" {
  command = plan

  variables {
    producer_rule_arns = ["arn:aws:iam::123456789012:role/shop"]
  }

  expect_failures = [var.producer_rule_arns]
}

run "a_topic_with_a_wildcard_is_rejected" {
  command = plan

  variables {
    producer_topic_arns = ["arn:aws:sns:eu-west-1:123456789012:*"]
  }

  expect_failures = [var.producer_topic_arns]
}

run "more_than_twelve_hours_of_visibility_is_rejected" {
  command = plan

  variables {
    visibility_timeout = 43201
  }

  expect_failures = [var.visibility_timeout]
}

run "a_function_timeout_below_three_order_budgets_is_rejected" {
  command = plan

  variables {
    function_timeout = 29
  }

  expect_failures = [var.function_timeout]
}

run "more_than_256_mb_is_rejected" {
  command = plan

  variables {
    memory_size = 512
  }

  expect_failures = [var.memory_size]
}

run "a_batch_of_eleven_is_rejected" {
  command = plan

  variables {
    batch_size = 11
  }

  expect_failures = [var.batch_size]
}

run "a_maximum_concurrency_of_one_is_rejected" {
  command = plan

  variables {
    maximum_concurrency = 1
  }

  expect_failures = [var.maximum_concurrency]
}

run "a_log_retention_of_one_day_is_rejected" {
  command = plan

  variables {
    log_retention_days = 1
  }

  expect_failures = [var.log_retention_days]
}

run "overriding_a_tag_of_the_module_is_rejected" {
  command = plan

  variables {
    tags = { Environment = "prod" }
  }

  expect_failures = [var.tags]
}

run "six_days_of_recovery_are_rejected" {
  command = plan

  variables {
    secret_recovery_days = 6
  }

  expect_failures = [var.secret_recovery_days]
}

run "one_poller_is_rejected" {
  command = plan

  variables {
    provisioned_pollers = { minimum = 1, maximum = 2 }
  }

  expect_failures = [var.provisioned_pollers]
}

run "a_minimum_of_pollers_above_the_maximum_is_rejected" {
  command = plan

  variables {
    provisioned_pollers = { minimum = 3, maximum = 2 }
  }

  expect_failures = [var.provisioned_pollers]
}

run "a_boundary_that_is_not_an_arn_is_rejected" {
  command = plan

  variables {
    permissions_boundary = "bounds"
  }

  expect_failures = [var.permissions_boundary]
}

run "a_table_name_with_a_space_is_rejected" {
  command = plan

  variables {
    orders_table_name = "my orders"
  }

  expect_failures = [var.orders_table_name]
}

run "warm_throughput_below_the_default_is_rejected" {
  command = plan

  variables {
    warm_throughput = { read = 12000, write = 1000 }
  }

  expect_failures = [var.warm_throughput]
}

run "an_alias_as_kms_key_is_rejected" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:alias/orders"
  }

  expect_failures = [var.kms_key_arn]
}

run "an_alias_as_previous_kms_key_is_rejected" {
  command = plan

  variables {
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:alias/orders"]
  }

  expect_failures = [var.previous_kms_key_arns]
}

run "an_email_address_as_topic_is_rejected" {
  command = plan

  variables {
    alarm_topic_arn = "ops@example.com"
  }

  expect_failures = [var.alarm_topic_arn]
}

run "a_stripe_key_as_webhook_secret_is_rejected" {
  command = plan

  variables {
    webhook_secret = "sk_test_canary"
  }

  expect_failures = [var.webhook_secret]
}

run "three_webhook_secrets_are_rejected" {
  command = plan

  variables {
    webhook_secret = "whsec_a\nwhsec_b\nwhsec_c"
  }

  expect_failures = [var.webhook_secret]
}

run "a_second_webhook_secret_of_another_kind_is_rejected" {
  command = plan

  variables {
    webhook_secret = "whsec_a\nsk_test_b"
  }

  expect_failures = [var.webhook_secret]
}

run "two_webhook_secrets_are_accepted" {
  command = plan

  variables {
    webhook_secret         = "whsec_a\nwhsec_b"
    webhook_secret_version = 1
  }

  assert {
    condition     = aws_secretsmanager_secret_version.webhook[0].secret_string_wo_version == 1
    error_message = "webhook_secret: two secrets are not stored"
  }
}

run "half_a_webhook_secret_version_is_rejected" {
  command = plan

  variables {
    webhook_secret_version = 1.5
  }

  expect_failures = [var.webhook_secret_version]
}

run "a_negative_webhook_secret_version_is_rejected" {
  command = plan

  variables {
    webhook_secret_version = -1
  }

  expect_failures = [var.webhook_secret_version]
}

run "a_webhook_rate_of_zero_is_rejected" {
  command = plan

  variables {
    webhook_rate_limit = 0
  }

  expect_failures = [var.webhook_rate_limit]
}

run "a_webhook_rate_above_the_region_s_quota_is_rejected" {
  command = plan

  variables {
    webhook_rate_limit = 10001
  }

  expect_failures = [var.webhook_rate_limit]
}

run "a_webhook_burst_of_zero_is_rejected" {
  command = plan

  variables {
    webhook_burst_limit = 0
  }

  expect_failures = [var.webhook_burst_limit]
}

run "a_webhook_burst_above_the_region_s_quota_is_rejected" {
  command = plan

  variables {
    webhook_burst_limit = 5001
  }

  expect_failures = [var.webhook_burst_limit]
}

run "a_webhook_function_of_64_mb_is_rejected" {
  command = plan

  variables {
    webhook_memory_size = 64
  }

  expect_failures = [var.webhook_memory_size]
}

run "a_webhook_function_of_512_mb_is_rejected" {
  command = plan

  variables {
    webhook_memory_size = 512
  }

  expect_failures = [var.webhook_memory_size]
}

run "a_webhook_function_without_concurrency_is_rejected" {
  command = plan

  variables {
    webhook_reserved_concurrency = 0
  }

  expect_failures = [var.webhook_reserved_concurrency]
}

run "a_reconcile_interval_of_zero_is_rejected" {
  command = plan

  variables {
    reconcile_minutes = 0
  }

  expect_failures = [var.reconcile_minutes]
}

run "a_reconcile_interval_above_an_hour_is_rejected" {
  command = plan

  variables {
    reconcile_minutes = 61
  }

  expect_failures = [var.reconcile_minutes]
}

run "a_reconcile_interval_of_half_minutes_is_rejected" {
  command = plan

  variables {
    reconcile_minutes = 2.5
  }

  expect_failures = [var.reconcile_minutes]
}

run "a_reconcile_rate_of_zero_is_rejected" {
  command = plan

  variables {
    reconcile_rate = 0
  }

  expect_failures = [var.reconcile_rate]
}

run "a_reconcile_rate_above_stripe_s_limit_is_rejected" {
  command = plan

  variables {
    reconcile_rate = 101
  }

  expect_failures = [var.reconcile_rate]
}

run "a_fraction_as_reconcile_rate_is_rejected" {
  command = plan

  variables {
    reconcile_rate = 1.5
  }

  expect_failures = [var.reconcile_rate]
}

run "an_archive_of_half_a_day_is_rejected" {
  command = plan

  variables {
    event_archive_days = 0.5
  }

  expect_failures = [var.event_archive_days]
}

run "a_negative_event_archive_is_rejected" {
  command = plan

  variables {
    event_archive_days = -1
  }

  expect_failures = [var.event_archive_days]
}

run "an_issuer_without_https_is_rejected" {
  command = plan

  variables {
    intake_jwt = { issuer = "http://issuer.invalid", audience = ["shop"] }
  }

  expect_failures = [var.intake_jwt]
}

run "tokens_for_any_audience_are_rejected" {
  command = plan

  variables {
    intake_jwt = { issuer = "https://issuer.invalid", audience = [] }
  }

  expect_failures = [var.intake_jwt]
}

run "an_empty_audience_is_rejected" {
  command = plan

  variables {
    intake_jwt = { issuer = "https://issuer.invalid", audience = [""] }
  }

  expect_failures = [var.intake_jwt]
}

run "an_owner_claim_without_a_name_is_rejected" {
  command = plan

  variables {
    intake_jwt = { issuer = "https://issuer.invalid", audience = ["shop"], owner_claim = "" }
  }

  expect_failures = [var.intake_jwt]
}

run "a_customer_claim_without_a_name_is_rejected" {
  command = plan

  variables {
    intake_jwt = { issuer = "https://issuer.invalid", audience = ["shop"], customer_claim = "" }
  }

  expect_failures = [var.intake_jwt]
}

run "an_intake_that_cannot_run_is_rejected" {
  command = plan

  variables {
    intake_reserved_concurrency = 0
  }

  expect_failures = [var.intake_reserved_concurrency]
}

run "a_secret_key_is_no_read_only_key" {
  command = plan

  variables {
    stripe_read_key = "sk_test_canary"
  }

  expect_failures = [var.stripe_read_key]
}

run "an_intake_rate_of_zero_is_rejected" {
  command = plan

  variables {
    intake_rate_limit = 0
  }

  expect_failures = [var.intake_rate_limit]
}

run "an_intake_rate_above_the_quota_is_rejected" {
  command = plan

  variables {
    intake_rate_limit = 10001
  }

  expect_failures = [var.intake_rate_limit]
}

run "an_intake_burst_above_the_quota_is_rejected" {
  command = plan

  variables {
    intake_burst_limit = 5001
  }

  expect_failures = [var.intake_burst_limit]
}

run "a_fraction_as_intake_burst_is_rejected" {
  command = plan

  variables {
    intake_burst_limit = 1.5
  }

  expect_failures = [var.intake_burst_limit]
}

run "goods_held_for_half_an_hour_are_rejected" {
  command = plan

  variables {
    stock_hold_hours = 0.5
  }

  expect_failures = [var.stock_hold_hours]
}

run "goods_that_are_not_held_are_rejected" {
  command = plan

  variables {
    stock_hold_hours = 0
  }

  expect_failures = [var.stock_hold_hours]
}

run "receipts_without_a_sender_are_rejected" {
  command = plan

  variables {
    create_receipts           = true
    receipt_configuration_set = "shop-receipts"
  }

  expect_failures = [var.create_receipts]
}

run "receipts_without_a_configuration_set_are_rejected" {
  command = plan

  variables {
    create_receipts = true
    receipt_from    = "receipts@shop.invalid"
  }

  expect_failures = [var.create_receipts]
}

run "a_sender_with_a_line_break_is_rejected" {
  command = plan

  variables {
    receipt_from = "Shop\nBcc: <receipts@shop.invalid>"
  }

  expect_failures = [var.receipt_from]
}

run "a_sender_with_a_domain_in_capitals_is_rejected" {
  command = plan

  variables {
    receipt_from = "receipts@Shop.invalid"
  }

  expect_failures = [var.receipt_from]
}

run "an_identity_with_a_wildcard_is_rejected" {
  command = plan

  variables {
    receipt_identity = "*.invalid"
  }

  expect_failures = [var.receipt_identity]
}

run "a_configuration_set_with_a_space_is_rejected" {
  command = plan

  variables {
    receipt_configuration_set = "shop receipts"
  }

  expect_failures = [var.receipt_configuration_set]
}

run "an_unknown_receipt_mode_is_rejected" {
  command = plan

  variables {
    receipt_mode = "exactly_once"
  }

  expect_failures = [var.receipt_mode]
}

run "an_unknown_processor_is_rejected" {
  command = plan

  variables {
    architecture = "amd64"
  }

  expect_failures = [var.architecture]
}
